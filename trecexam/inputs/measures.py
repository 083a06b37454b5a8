"""Checks of the measures of a track, and notes on how they are to be read, from settings, bank and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ir_measures import Measure

from converters.run import Run
from trecexam.bank.model import QUERY, Bank
from trecexam.config import TrackConfig
from trecexam.errors import ConfigError, TrecexamError
from trecexam.inputs.track_graders import MeasureLike
from trecexam.results.text import CHANGES, Note, plural, shorten_list
from trecexam.scores.columns.measures.cover import EQUAL
from trecexam.scores.measures import COVER, DIVERSITY, at_min_rating, measure


def check_measures(config: TrackConfig, path: Path) -> None:
    """Refuse measures that cannot be computed, before hours of grading go by; `path` is of the settings."""
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


def order_cautions(runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield a note on runs that trec_eval 9 orders otherwise."""
    reordered = {name: n for name, run in runs.items() if (n := run.n_reordered_in_32_bits)}
    if reordered:
        yield (
            f"{shorten_list(reordered, 3, quote='')}: scores that are equal in 32 bits, so trec_eval 9 "
            f"orders {plural(sum(reordered.values()), 'ranking')} otherwise; here scores are compared in 64 "
            "bits, as in trec_eval 10"
        )


def skipping_cautions(answered: Mapping[str, int], n_queries: int) -> Iterator[str]:
    """Yield a note on the runs that answer fewer queries than others, where means are over all queries."""
    most, queries = max(answered.values(), default=0), plural(n_queries, "query")
    fewer = sorted((n, run) for run, n in answered.items() if n < most)
    if len(fewer) == 1:
        yield f"{fewer[0][1]} answers {fewer[0][0]:,} of {queries}; the others count as 0"
    elif fewer:
        listed = shorten_list([f"{run} {n:,}" for n, run in fewer], quote="")
        yield f"{len(fewer):,} runs answer fewer than {queries}, and the others count as 0: {listed}"


def rating_cautions(config: TrackConfig, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield notes on measures on ratings that count from their default rating on, and not from min_rating.

    Labels that count items have no such threshold; Cover has one all the same, 4 by default.

    Args:
        config: on the scale of the grader.
        measures: as they were given: one whose `rel` is written is left alone.
    """
    threshold, counts = config.scores.min_rating, config.scores.label == "count"
    at_default = [each for each in with_default_rel(measures) if not counts or each.NAME in COVER]
    for default in sorted({each["rel"] for each in at_default} - {threshold}):
        these = [each for each in at_default if each["rel"] == default]
        yield counting_note(these, f"ratings from {default}", threshold)


def with_default_rel(measures: Iterable[MeasureLike]) -> Iterator[Measure]:
    """Yield measures that take a `rel` and were given none; subtopics are made with the threshold."""
    for each in map(measure, measures):
        rel = each.SUPPORTED_PARAMS.get("rel")
        if rel and isinstance(rel.default, int) and "rel" not in each.params and each.NAME not in DIVERSITY:
            yield each


def counting_note(measures: Sequence[Measure], what: str, threshold: int) -> Note:
    """Return a note that names measures which count from another threshold, and those with the track's."""
    better = ", ".join(
        printed_names(at_min_rating(each, threshold, counts=False) or each for each in measures)
    )
    names = ", ".join(printed_names(measures))
    return Note(f"{what} on count in {names}; this track's threshold is {threshold}: {better}", CHANGES)


def printed_names(measures: Iterable[Measure]) -> list[str]:
    """Return the names of measures, each once."""
    return list(dict.fromkeys(map(str, measures)))


def above_scale(names: Iterable[str], config: TrackConfig, max_rating: int) -> Iterator[str]:
    """Yield a note on measures that count from a rating which no grade can have."""
    labels_are_ratings = config.scores.label != "count"
    never = [
        str(each)
        for each in map(measure, names)
        if (each.NAME in COVER and each["rel"] > max_rating)
        or (labels_are_ratings and each.NAME not in DIVERSITY and each.params.get("rel", 0) > max_rating)
    ]
    if never:
        line = f"the grader rates 0..{max_rating}, so all runs have 0 in {', '.join(never)}; see `rel`"
        yield Note(line, CHANGES)


def without_vital(names: Iterable[str], bank: Bank) -> Iterator[str]:
    """Yield a note on measures of vital items alone where the bank has none: they are 0, as in nuggetizer."""
    vital = [str(each) for each in weighted(names) if each["weights"] == "vital"]
    if vital and len(bank) and not bank.n_vital:
        yield Note(f"no item of the bank is vital, so all runs have 0 in {', '.join(vital)}", CHANGES)
