"""holes.tsv."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.holes.holes import HolesReport, holes_report
from trecexam.line.loaded import LoadedTrack, Part
from trecexam.line.output_files import OutputFiles
from trecexam.tables.table import to_tsv

_PARTS: tuple[Part, ...] = ("cells", "runs", "official", "settings")


def own_holes(track: LoadedTrack) -> HolesReport:
    """The holes in the track's depth."""
    return track.derived("holes", _PARTS, lambda: holes_report(track))


def _holes(track: LoadedTrack) -> Mapping[str, bytes]:
    return {"holes.tsv": to_tsv(own_holes(track).table()).encode()}


OUTPUTS = (OutputFiles(("holes.tsv",), _PARTS, _holes),)
