"""The arithmetic of learning: features, steps of the scale, Gaussian processes; no track, no file."""
