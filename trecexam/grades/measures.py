"""Checks of the measures that a track's settings name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ir_measures import Measure

from trecexam.bank.model import QUERY, Bank
from trecexam.config import TrackConfig
from trecexam.errors import ConfigError, TrecexamError
from trecexam.scores.columns.measures.cover import EQUAL
from trecexam.scores.measures import COVER, measure


def check_measures(config: TrackConfig, path: Path) -> None:
    """Refuse measures that cannot be computed, before hours of grading go by.

    Args:
        path: the settings' file.

    Raises:
        ConfigError: with the reason.
    """
    settings = {"measures": config.measures(), "official_measures": config.official_measures()}
    for key, names in settings.items():
        for name in names:
            try:
                measure(name, official=key == "official_measures")
            except ValueError as error:
                raise ConfigError(f"[scores] {key}: {error}", path=path) from None


def weighted(names: Iterable[str]) -> list[Measure]:
    """Return the measures that weigh items."""
    return [each for each in map(measure, names) if each.NAME in COVER and each["weights"] != EQUAL]


def check_importance(names: Iterable[str], bank: Bank, files: Sequence[Path]) -> None:
    """Refuse measures that weigh items by an importance, or by weights, which the bank does not have.

    A bank that has items but no vital one scores 0 where these alone count, see `without_vital`.

    Args:
        names: measures on rubric ratings, that can be computed otherwise.
        bank: the items that the grader asks about.
        files: the bank's.

    Raises:
        TrecexamError: with the reason.
    """
    of_queries = any(item.kind == QUERY for items in bank.items.values() for item in items)
    needs = {
        "item": (bank.has_weights, "items with a weight", '"weight": a number'),
        "vital": (not of_queries, "a vital item", '"importance": "vital"'),
        "importance": (bank.has_importance, "items with an importance", '"importance": "vital" or "okay"'),
    }
    for each in weighted(names):
        has, needed, write = needs[each["weights"]]
        if not has:
            raise TrecexamError(
                f"{each} needs {needed}, and the grader asks about none: write {write} beside items in the "
                "bank, or take the measure away",
                path=files[0] if len(files) == 1 else None,
            )
