"""Estimation of a model's parameters: likelihood, priors, optimiser, standard errors."""
