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
#: Modules that are imported at the first use of their names: `trecexam --help` needs none of them.
_LAZY = {
    "Evaluation": "extensions.evaluate.evaluating",
    "Track": "track",
    "evaluate": "extensions.evaluate.evaluating",
    "make_demo_track": "demo",
    "open_track": "track",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'trecexam' has no attribute {name!r}")
    return getattr(import_module(f"trecexam.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
