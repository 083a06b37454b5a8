"""Rankings of runs compared: rank correlations, swapped pairs, outliers."""
