"""The arithmetic of learning: features, steps of the scale, Gaussian processes; knows no track and no file."""
