"""What the graders that run a language model here share."""
