"""Judgment holes filled with automatic labels."""
