"""A track in PyTerrier's frames and transformers, for `pt.Experiment` (extra `pyterrier`)."""

from trecexam.extensions.libraries.pyterrier import Cover, nCover, qrels, runs, topics

__all__ = ["Cover", "nCover", "qrels", "runs", "topics"]
