"""The prompts of a model about knowledge blocks, and how its answers are read."""
