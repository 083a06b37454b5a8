"""human.tsv."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.override.overriding import human_table
from trecexam.line.loaded import EVERYTHING, LoadedTrack
from trecexam.line.output_files import OutputFiles
from trecexam.tables.table import Table, to_tsv


def own_ratings(track: LoadedTrack) -> Table | None:
    """People's ratings and what became of them; None where nobody rated anything."""
    return human_table(track) if track.overrides.decisions else None


def _human(track: LoadedTrack) -> Mapping[str, bytes]:
    table = own_ratings(track)
    return {} if table is None else {"human.tsv": to_tsv(table).encode()}


OUTPUTS = (OutputFiles(("human.tsv",), EVERYTHING, _human),)
