"""The leaderboard in out/, and the values behind it."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.leaderboard.tables import leaderboard_json, leaderboard_table, per_query_table
from trecexam.line.evaluation import leaderboard, rubric_values
from trecexam.line.loaded import LoadedTrack
from trecexam.line.output_files import OutputFiles
from trecexam.tables.table import to_json, to_tsv


def _leaderboard(track: LoadedTrack) -> Mapping[str, bytes]:
    board = leaderboard(track)
    shown = {name: track.folder.shown(path) for name, path in track.run_files.items()}
    as_json = leaderboard_json(board, shown, track.override_summary())
    return {
        "leaderboard.tsv": to_tsv(leaderboard_table(board)).encode(),
        "leaderboard.json": to_json(as_json).encode(),
    }


def _per_query(track: LoadedTrack) -> Mapping[str, bytes]:
    values = rubric_values(track)
    return {"per_query.tsv": to_tsv(per_query_table(values, values.measures)).encode()}


OUTPUTS = (
    OutputFiles(
        ("leaderboard.tsv", "leaderboard.json"), ("cells", "people", "runs", "settings"), _leaderboard
    ),
    OutputFiles(("per_query.tsv",), ("cells", "runs", "settings"), _per_query),
)
