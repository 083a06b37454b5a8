"""Arithmetic of learning: features, regressions, Gaussian processes, without tracks and files."""
