"""Inspection of grades, item by item."""
