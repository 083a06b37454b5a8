"""trecexam: autograding of retrieve/generate systems with test banks.

>>> import trecexam
>>> track = trecexam.open_track("mytrack")
>>> track.update()
>>> track.leaderboard(["nDCG@10", "Cover(rel=4)@20"])
>>> trecexam.evaluate({"mine": frame}, bank="bank.jsonl", passages="passages.jsonl")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.version import __version__

if TYPE_CHECKING:
    from trecexam.demo import make_demo_track
    from trecexam.extensions.evaluate.evaluating import Evaluation, evaluate
    from trecexam.track import Track, open_track

__all__ = [
    "Evaluation",
    "Track",
    "TrecexamError",
    "__version__",
    "evaluate",
    "make_demo_track",
    "open_track",
]


def __getattr__(name: str) -> Any:
    # Importing the package must stay cheap (`trecexam --help`), so this module loads on first use.
    if name in {"Track", "open_track"}:
        import trecexam.track as track

        return getattr(track, name)
    if name in {"Evaluation", "evaluate"}:
        return getattr(import_module("trecexam.extensions.evaluate.evaluating"), name)
    if name == "make_demo_track":
        from trecexam.demo import make_demo_track

        return make_demo_track
    if name == "pyterrier":
        return import_module("trecexam.pyterrier")
    raise AttributeError(f"module 'trecexam' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
