"""Passages in the runs' first ranks without a judgment or a grade."""
