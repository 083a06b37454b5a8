"""The arithmetic of simulations, without files."""
