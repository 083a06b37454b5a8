"""Judgment holes filled with automatic labels, and simulations that tell what that is worth."""
