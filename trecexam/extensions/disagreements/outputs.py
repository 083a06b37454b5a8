"""Swapped pairs of runs, and outliers, in out/."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from trecexam.extensions.disagreements.disagreements import outliers, swaps
from trecexam.features.correlation.paired_scores import if_any
from trecexam.line.assessment import EVERYTHING, Assessment
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.scores.paired_tests import MOST_RUNS


def _swaps(track: Assessment) -> Mapping[str, bytes]:
    result = if_any(track, partial(swaps, most=MOST_RUNS))
    return {} if result is None else {"swaps.tsv": result.to_tsv().encode()}


def _outliers(track: Assessment) -> Mapping[str, bytes]:
    result = if_any(track, outliers)
    return {} if result is None else {"outliers.tsv": result.to_tsv().encode()}


DISAGREEMENTS = Feature(
    (
        OutputFiles(
            {"swaps.tsv": "Pairs of runs that the two leaderboards order differently, with tests."},
            EVERYTHING,
            _swaps,
        ),
        OutputFiles(
            {"outliers.tsv": "Runs, largest difference between automatic and official rank first."},
            EVERYTHING,
            _outliers,
        ),
    )
)
