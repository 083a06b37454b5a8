"""What moved between two leaderboards, and because of which labels, items, files and settings."""

from trecexam.features.history.arithmetic.board import BoardChange, QueryMove, RunChange, board_change
from trecexam.features.history.arithmetic.counting import Counting, counting
from trecexam.features.history.arithmetic.entry import (
    Earlier,
    Entry,
    FieldChange,
    HumanLabel,
    OriginChange,
    SnapshotOrigin,
    origin_change,
)
from trecexam.features.history.arithmetic.labels import ItemChange, LabelChange, label_changes
from trecexam.features.history.arithmetic.leaderboard_snapshot import (
    ItemKey,
    LeaderboardSnapshot,
    QuerySnapshot,
    RunState,
    ranks,
)

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
    "LeaderboardSnapshot",
    "OriginChange",
    "QueryMove",
    "QuerySnapshot",
    "RunChange",
    "RunState",
    "SnapshotOrigin",
    "board_change",
    "counting",
    "label_changes",
    "origin_change",
    "ranks",
]
