"""A track in PyTerrier's frames and transformers, for `pt.Experiment` and pipelines (extra `pyterrier`)."""

from trecexam.extensions.libraries.pyterrier import Cover, Ratings, nCover, qrels, ratings, runs, topics

__all__ = ["Cover", "Ratings", "nCover", "qrels", "ratings", "runs", "topics"]
