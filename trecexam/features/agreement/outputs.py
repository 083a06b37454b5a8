"""agreement.tsv."""

from __future__ import annotations

from collections.abc import Mapping

from trecexam.features.agreement.agreement import Agreements, agreements_if_any
from trecexam.line.loaded import LoadedTrack, Part
from trecexam.line.output_files import OutputFiles
from trecexam.tables.table import to_tsv

_PARTS: tuple[Part, ...] = ("cells", "people", "official", "settings")


def own_agreement(track: LoadedTrack) -> Agreements | None:
    """The agreement at the track's thresholds; None where no passage has both labels."""
    return track.derived("agreement", _PARTS, lambda: agreements_if_any(track))


def _agreement(track: LoadedTrack) -> Mapping[str, bytes]:
    agreed = own_agreement(track)
    return {} if agreed is None else {"agreement.tsv": to_tsv(agreed.table()).encode()}


OUTPUTS = (OutputFiles(("agreement.tsv",), _PARTS, _agreement),)
