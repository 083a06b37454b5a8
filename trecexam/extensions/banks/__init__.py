"""The test bank: written by a model, checked, compared, edited."""
