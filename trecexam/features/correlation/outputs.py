"""How the automatic leaderboard agrees with the official one, in out/."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.correlation.comparison import (
    LeaderboardComparison,
    Outliers,
    SwappedPairs,
    compare,
    outlying,
    swapped,
)
from trecexam.line.loaded import EVERYTHING, LoadedTrack
from trecexam.line.output_files import OutputFiles
from trecexam.line.rejected import not_computable
from trecexam.tables.table import to_json, to_tsv


def own_comparison(track: LoadedTrack) -> LeaderboardComparison | None:
    """The comparison by the track's own measures; None where there is nothing to compare."""
    # Otherwise rejected.tsv says why.
    return track.derived(
        "correlation", EVERYTHING, lambda: compare(track) if not_computable(track) is None else None
    )


def own_outliers(track: LoadedTrack) -> Outliers | None:
    """The outliers by the track's own measures; None where there is nothing to compare."""
    return track.derived(
        "outliers", EVERYTHING, lambda: outlying(track) if not_computable(track) is None else None
    )


def _own_swaps(track: LoadedTrack) -> SwappedPairs | None:
    return swapped(track) if not_computable(track) is None else None


def _correlation(track: LoadedTrack) -> Mapping[str, bytes]:
    compared = own_comparison(track)
    if compared is None:
        return {}
    as_json = compared.as_json() | {"human_ratings": track.override_summary()}
    return {
        "correlation.tsv": to_tsv(compared.table()).encode(),
        "correlation.json": to_json(as_json).encode(),
    }


def _swaps(track: LoadedTrack) -> Mapping[str, bytes]:
    swaps = _own_swaps(track)
    return {} if swaps is None else {"swaps.tsv": to_tsv(swaps.table()).encode()}


def _outliers(track: LoadedTrack) -> Mapping[str, bytes]:
    outliers = own_outliers(track)
    return {} if outliers is None else {"outliers.tsv": to_tsv(outliers.table()).encode()}


CORRELATION = OutputFiles(("correlation.tsv", "correlation.json"), EVERYTHING, _correlation)
SWAPS = OutputFiles(("swaps.tsv",), EVERYTHING, _swaps)
OUTLIERS = OutputFiles(("outliers.tsv",), EVERYTHING, _outliers)
