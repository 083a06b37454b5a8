"""Whether the measures that a track's settings name can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from trecexam.bank.model import Bank
from trecexam.config import TrackConfig
from trecexam.errors import ConfigError, TrecexamError
from trecexam.scores.measures import COVER, measure
from trecexam.scores.weights import EQUAL


def check_measures(config: TrackConfig, path: Path) -> None:
    """Refuses measures that cannot be computed, before hours of grading go by.

    Args:
        path: the settings' file.

    Raises:
        ConfigError: with the reason.
    """
    for key, names in (
        ("measures", config.measures()),
        ("official_measures", config.official_measures()),
    ):
        for name in names:
            try:
                measure(name, official=key == "official_measures")
            except ValueError as error:
                raise ConfigError(f"[scores] {key}: {error}", path=path) from None


def check_importance(names: Iterable[str], bank: Bank, files: Sequence[Path]) -> None:
    """Refuses measures that weigh items by an importance which the bank does not have.

    Args:
        names: measures on rubric ratings, that can be computed otherwise.
        bank: the items that the grader asks about.
        files: the bank's.

    Raises:
        TrecexamError: with the reason.
    """
    for each in map(measure, names):
        if each.NAME not in COVER or each["weights"] == EQUAL:
            continue
        vital = each["weights"] == "vital"
        if not (bank.n_vital if vital else bank.has_importance):
            needed, write = (
                ("a vital item", '"vital"') if vital else ("items with an importance", '"vital" or "okay"')
            )
            raise TrecexamError(
                f'{each} needs {needed}, and the grader asks about none: write "importance": {write} beside '
                "items in the bank, or take the measure away",
                path=files[0] if len(files) == 1 else None,
            )
