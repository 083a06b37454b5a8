"""Conversion of a track to objects of other libraries: data frames, PyTerrier (`trecexam.pyterrier`)."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension("libraries")
