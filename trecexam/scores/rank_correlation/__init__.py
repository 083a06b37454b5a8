"""Rankings of runs compared: rank correlations, outliers."""
