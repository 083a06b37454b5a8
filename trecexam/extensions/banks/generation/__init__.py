"""Test banks written by a language model."""
