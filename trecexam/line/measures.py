"""Whether the measures that a track's settings name can be computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ir_measures import Measure

from converters.run import Run
from trecexam.bank.model import QUERY, Bank
from trecexam.config import TrackConfig
from trecexam.errors import ConfigError, TrecexamError
from trecexam.line.cautions import encoder_cautions
from trecexam.line.probable_ratings import without_probabilities
from trecexam.scores.cover import EQUAL, ITEM
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.tables.notes import CHANGES, METHOD, Note
from trecexam.tables.text import plural, shorten_list

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


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
    """Refuses measures that weigh items by an importance, or by weights, which the bank does not have.

    A bank that has items but no vital one scores 0 where these alone count, see `without_vital`.

    Args:
        names: measures on rubric ratings, that can be computed otherwise.
        bank: the items that the grader asks about.
        files: the bank's.

    Raises:
        TrecexamError: with the reason.
    """
    of_queries = any(item.kind == QUERY for items in bank.items.values() for item in items)
    for each in _weighted(names):
        if each["weights"] == ITEM:
            if not bank.has_weights:
                raise TrecexamError(
                    f'{each} needs items with a weight, and the grader asks about none: write "weight": a '
                    "number beside items in the bank, or take the measure away",
                    path=files[0] if len(files) == 1 else None,
                )
            continue
        vital = each["weights"] == "vital"
        if of_queries if vital else not bank.has_importance:
            needed, write = (
                ("a vital item", '"vital"') if vital else ("items with an importance", '"vital" or "okay"')
            )
            raise TrecexamError(
                f'{each} needs {needed}, and the grader asks about none: write "importance": {write} beside '
                "items in the bank, or take the measure away",
                path=files[0] if len(files) == 1 else None,
            )


def without_vital(names: Iterable[str], bank: Bank) -> tuple[str, ...]:
    """A line on measures of vital items alone where the bank has none: they are 0, as in nuggetizer."""
    vital = [str(each) for each in _weighted(names) if each["weights"] == "vital"]
    if not vital or not len(bank) or bank.n_vital:
        return ()
    return (Note(f"no item of the bank is vital, so all runs have 0 in {', '.join(vital)}", CHANGES),)


def left_out_runs(track: Assessment) -> tuple[str, ...]:
    """A line on runs that are left out, and the setting that brings them back."""
    if not track.inputs.left_out_runs:
        return ()
    if not track.kind.ranks:
        return (Note(f"skipped {plural(track.inputs.left_out_runs, 'run')} without citations", METHOD),)
    if track.config.track.unit != "response":
        # One of several graders looks at some of the runs alone.
        which = track.folder.whole.graders[track.name].runs
        runs = plural(track.inputs.left_out_runs, "run")
        return (Note(f'skipped {runs} by `runs = "{which}"` in [graders.{track.name}]', METHOD),)
    section = "track" if track.folder.grader is None else track.folder.section
    runs = plural(track.inputs.left_out_runs, "ranked run")
    line = f'skipped {runs} by `unit = "response"` in [{section}]; `unit = "passage"` grades ranked runs too'
    return (Note(line, METHOD),)


def run_cautions(track: Assessment) -> tuple[str, ...]:
    """What one must know of the runs to read any leaderboard of them, one per line."""
    return (*left_out_runs(track), *order_cautions(track.runs), *encoder_cautions(track))


def order_cautions(runs: Mapping[str, Run]) -> tuple[str, ...]:
    """Return a line on runs that trec_eval 9 orders otherwise, if any."""
    names = [name for name, run in runs.items() if run.n_reordered_in_32_bits]
    if not names:
        return ()
    queries = sum(runs[name].n_reordered_in_32_bits for name in names)
    have = "has" if len(names) == 1 else "have"
    return (
        f"{shorten_list(names, 3, quote='')} {have} scores that are equal in 32 bits: trec_eval 9 orders "
        f"{plural(queries, 'ranking')} otherwise; here scores are compared in 64 bits, as in trec_eval 10",
    )


def own_cautions(track: Assessment) -> tuple[str, ...]:
    """What one must know to read a leaderboard by the track's own measures, one per line."""
    generated = track.inputs.dropped.generated.intersection(track.runs)
    ranked_by = measure(track.measures[0])
    named = track.config.scores.measures is not None
    suited = named or not track.kind.ranks or ranked_by.NAME in COVER | DIVERSITY
    few: tuple[str, ...] = ()
    if not suited and 0 < len(generated) < len(track.runs):
        cover = next(name for name in track.measures if measure(name).NAME in COVER)
        few = (
            f"generated responses ({len(generated):,} of {len(track.runs):,} runs) fill few ranks and have "
            f"little {ranked_by} whatever they say: compare them with ranked runs by {cover}",
        )
    certain, vital = without_probabilities(track, track.measures), without_vital(track.measures, track.bank)
    expected = _expected(track)
    on_queries = (*vital, *_against(track))
    return (*run_cautions(track), *on_queries, *few, *certain, *expected)


def first_measure_note(track: Assessment) -> tuple[str, ...]:
    """A note for readers who see the first measure alone, where the leaderboard of all graders has
    another column of this grader.
    """
    if not track.folder.is_one_of_several:
        return ()
    first, column = (str(measure(names[0])) for names in (track.measures, track.columns))
    if first == column:
        return ()
    return (
        f"by {first}, the first measure of [{track.folder.section}]; the leaderboard of all graders goes by "
        f'{column}: -m "{column}" takes that one',
    )


def _expected(track: Assessment) -> tuple[str, ...]:
    """A line on default measures with label = "expected": the one that orders the runs is another."""
    scores, first = track.config.scores, track.measures[0]
    if scores.label != "expected" or scores.measures is not None or not first.startswith("P("):
        return ()
    expected = [name for name in track.measures if measure(name).NAME in ("nDCG", "ECover")]
    return (
        f'label = "expected" is for {", ".join(expected)}; the runs are ordered by {first}, whose values do '
        "not depend on the pool; `measures` in [scores] orders them otherwise",
    )


def _against(track: Assessment) -> tuple[str, ...]:
    """A line on items that count against, where measures are shown that know nothing of that."""
    weighted = {str(each) for each in _weighted(track.measures) if each["weights"] == ITEM}
    unweighted = [name for name in track.measures if str(measure(name)) not in weighted]
    if not unweighted or not track.bank.n_against:
        return ()
    return (
        f"{track.bank.n_against:,} of {len(track.bank):,} items have a negative weight, and count against in "
        f"measures with weights={ITEM!r} alone: for labels and for {', '.join(unweighted)} they are like "
        "others",
    )


def above_scale(names: Iterable[str], config: TrackConfig, max_rating: int) -> tuple[str, ...]:
    """A line on measures that count from a rating which no grade can have: they are 0, whatever the run.

    Args:
        names: measures on rubric ratings.
        max_rating: the best of the grader's scale.
    """
    labels_are_ratings = config.scores.label != "count"
    never = [
        str(each)
        for each in map(measure, names)
        if (each.NAME in COVER and each["rel"] > max_rating)
        or (labels_are_ratings and each.NAME not in DIVERSITY and each.params.get("rel", 0) > max_rating)
    ]
    if not never:
        return ()
    line = f"the grader rates 0..{max_rating}, so all runs have 0 in {', '.join(never)}; see `rel`"
    return (Note(line, CHANGES),)


def _weighted(names: Iterable[str]) -> list[Measure]:
    return [each for each in map(measure, names) if each.NAME in COVER and each["weights"] != EQUAL]
