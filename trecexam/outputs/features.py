"""Every feature that has files in out/ or a part of the report."""

from __future__ import annotations

from trecexam.extensions.erag.extra_outputs import ERAG
from trecexam.extensions.exams.outputs import EXAMS
from trecexam.extensions.learn.outputs import LEARNING
from trecexam.extensions.ragval.extra_outputs import RAGVAL
from trecexam.features.agreement.outputs import AGREEMENT
from trecexam.features.correlation.outputs import CORRELATION, DISAGREEMENTS
from trecexam.features.exporting.outputs import EXPORTING
from trecexam.features.holes.outputs import HOLES
from trecexam.features.items.outputs import ITEMS
from trecexam.features.leaderboard.outputs import LEADERBOARD
from trecexam.features.override.outputs import OVERRIDE
from trecexam.features.support.outputs import SUPPORT_FEATURE
from trecexam.line.output_files import Feature

#: In the order of the manifest, and of the sections of the report.
FEATURES: tuple[Feature, ...] = (
    EXPORTING,
    LEADERBOARD,
    LEARNING,
    CORRELATION,
    AGREEMENT,
    ITEMS,
    OVERRIDE,
    HOLES,
    DISAGREEMENTS,
    ERAG,
    RAGVAL,
    SUPPORT_FEATURE,
    EXAMS,
)
