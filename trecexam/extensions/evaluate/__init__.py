"""`trecexam.evaluate` and `track.add_run` for Python."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension("evaluate")
