"""Test banks written by a language model: what it is asked, how its answers are read, where items go.

Nothing here runs a model or touches a file of the track.
"""
