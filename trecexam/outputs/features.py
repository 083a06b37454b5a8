"""Features with files in out/ or sections of the report: the core's and the extensions'."""

from __future__ import annotations

from functools import cache

from trecexam.extension import extensions, named
from trecexam.feature import Feature
from trecexam.features.agreement.agreement import AGREEMENT
from trecexam.features.correlation.outputs import CORRELATION
from trecexam.features.exporting.outputs import EXPORTING
from trecexam.features.holes.holes import HOLES
from trecexam.features.leaderboard.outputs import LEADERBOARD
from trecexam.features.override.overriding import OVERRIDE

#: In the order of the manifest, and of the sections of the report.
_SCORES: tuple[Feature, ...] = (EXPORTING, LEADERBOARD, CORRELATION, AGREEMENT)
_PEOPLE: tuple[Feature, ...] = (OVERRIDE, HOLES)


@cache
def features() -> tuple[Feature, ...]:
    """Return the core's features, and the extensions' before people's ratings or at the end.

    Raises:
        TrecexamError: an extension cannot be loaded.
    """
    added: list[Feature] = [named(at) for extension in extensions() for at in extension.features]
    early = (feature for feature in added if feature.early)
    return (*_SCORES, *early, *_PEOPLE, *(feature for feature in added if not feature.early))
