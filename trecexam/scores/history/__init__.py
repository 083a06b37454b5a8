"""What moved between two leaderboards, and because of which labels, items, files and settings."""

from trecexam.scores.history.board import BoardChange, QueryMove, RunChange, board_change
from trecexam.scores.history.counting import Counting, counting
from trecexam.scores.history.entry import (
    Earlier,
    Entry,
    FieldChange,
    HumanLabel,
    Origin,
    OriginChange,
    origin_change,
)
from trecexam.scores.history.labels import ItemChange, LabelChange, label_changes
from trecexam.scores.history.standing import ItemKey, QueryState, RunState, Standing, ranks

__all__ = [
    "BoardChange",
    "Counting",
    "Earlier",
    "Entry",
    "FieldChange",
    "HumanLabel",
    "ItemChange",
    "ItemKey",
    "LabelChange",
    "Origin",
    "OriginChange",
    "QueryMove",
    "QueryState",
    "RunChange",
    "RunState",
    "Standing",
    "board_change",
    "counting",
    "label_changes",
    "origin_change",
    "ranks",
]
