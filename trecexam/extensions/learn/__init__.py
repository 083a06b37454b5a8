"""A grader that learns from the judgments that a track has."""
