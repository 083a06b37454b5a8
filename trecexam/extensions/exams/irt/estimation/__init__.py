"""How a model's parameters are estimated: likelihood, priors, the optimiser, standard errors."""
