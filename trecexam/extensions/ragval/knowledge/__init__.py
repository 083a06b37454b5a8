"""Prompts about knowledge blocks, and reading of answers."""
