"""Judgment holes filled with automatic labels, and simulations of what that is worth."""
