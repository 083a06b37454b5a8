"""What a model is asked about knowledge blocks, and how its answers are read."""
