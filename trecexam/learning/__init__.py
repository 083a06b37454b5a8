"""Learning from the judgments that a track has, for the features that use it."""
