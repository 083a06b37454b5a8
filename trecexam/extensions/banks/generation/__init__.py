"""Test banks written by a language model: its prompts, how its answers are read, where items go.

Nothing here runs a model or touches a file of the track.
"""
