"""Knowledge blocks: which are chosen, what a model is asked about them, and how its answers are read.

No files of the track, no models.
"""
