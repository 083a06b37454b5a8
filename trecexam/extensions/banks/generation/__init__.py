"""Test banks written by a language model: prompts, reading of answers, and placement of items.

Nothing here runs a model or touches a file of the track.
"""
