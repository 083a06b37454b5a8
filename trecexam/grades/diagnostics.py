"""Notes on a loaded track: what is missing, what makes values too low, and how measures are to be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError, quoted
from trecexam.files.cache import memoized
from trecexam.graders.replies import unread_line
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.official import official_measures, relevance_thresholds
from trecexam.grades.probable_ratings import without_probabilities
from trecexam.grades.run_grades import partly_graded, runs_without_score
from trecexam.grades.sheets import Sheet
from trecexam.inputs.measures import (
    above_scale,
    counting_note,
    order_cautions,
    printed_names,
    rating_cautions,
    skipping_cautions,
    weighted,
    with_default_rel,
    without_vital,
)
from trecexam.inputs.track_graders import MeasureLike
from trecexam.results.notes import CHANGES, METHOD, Note
from trecexam.results.terminal import printable
from trecexam.results.text import number, plural, shorten_list
from trecexam.scores.columns.measures.cover import ITEM
from trecexam.scores.encoder_likeness import MIN_RUNS, agreements_of_runs, runs_like_encoder
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.measures import COVER, DIVERSITY, depends_on_pool, measure
from trecexam.scores.support import SUPPORT
from trecexam.scores.values import TIE_DECIMALS

#: Why there are no scores yet.
NO_RUNS = "no runs yet: drop some into the track's folder for runs"
#: Runs that a line names.
_NAMED = 20
#: What an answer that names no rating counts as, by `unparsed` in [scores].
POLICY = {
    "zero": "counts as 0",
    "seed": "counts as 1",
    "skip": "gives no rating, and what has no rating at all counts as not relevant",
}


# What is missing


def none_is_read(track: GradedTrack) -> bool:
    """Return True if the grader replied, and no reply can be read."""
    counts = track.counts
    return not counts.ok and counts.unparsed + counts.refused > 0


def grades_notes(track: GradedTrack, *, human: bool = True) -> tuple[str, ...]:
    """Return notes on the grades behind a result: people's, missing ones, answers without a rating."""
    counts, unlabelled = track.counts, without_label(track)
    if not counts.is_graded:
        return (Note(unlabelled or nothing_graded(track), CHANGES),)
    lines = [unlabelled] if unlabelled else []
    if counts.missing and not unlabelled:
        lines.append(
            f"{counts.missing:,} of {counts.cells:,} cells have no grade; "
            f"`trecexam watch {quoted(track.folder.root)}` grades what the grader can"
        )
    if counts.no_text:
        of_passages = f"{counts.no_text:,} of {counts.passages:,} pooled passages"
        lines.append(f"{of_passages} have no text and count as not relevant")
    people = human_notes(track.override_summary()) if human else ()
    return (*people, *(Note(line, CHANGES) for line in (*lines, *unread_answers(track))))


def human_notes(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many grades are people's, and whose; see `GradedTrack.override_summary`."""
    if summary["who"]:
        yield (
            f"a person's rating replaces the grader's in {plural(summary['cells'], 'cell')} and for "
            f"{plural(summary['passages'], 'passage')} as a whole "
            f"({', '.join(map(printable, summary['who']))})"
        )


def without_label(track: GradedTrack) -> str:
    """Return how many passages have no label in qrels that are the grades; "" for any other grader."""
    counts, file = track.counts, track.folder.recorded()
    if not counts.missing or file is None or not track.kind.ranks or track.grader.known_passages is None:
        return ""
    whose = f" --grader {track.folder.grader}" if track.folder.is_one_of_several else ""
    holes, shown = f"`trecexam holes {quoted(track.folder.root)}{whose}`", track.folder.shown(file)
    return (
        f"{counts.missing:,} of {counts.cells:,} pooled passages have no label in {shown}, and count as not "
        f"relevant; {holes} counts those of each run"
    )


@memoized
def unread_answers(track: GradedTrack) -> tuple[str, ...]:
    """Return how many answers name no rating, what they count as, and how many of them were cut off."""
    counts, policy = track.counts, track.config.scores.unparsed
    unread = counts.unparsed + counts.refused + counts.error
    if not unread:
        return ()
    lines = (
        f"of the grader's {counts.ok + unread:,} answers {counts.unparsed:,} are unparsed, "
        f'{counts.refused:,} refused and {counts.error:,} errors; the policy "{policy}": each unparsed '
        f"or refused one {POLICY[policy]}",
    )
    n_cut = track.grades.n_cut(track.sheets)
    early = f"{plural(n_cut, 'unparsed answer')} cut off (ends early: raise max_new_tokens in [grader])"
    return (*lines, early) if n_cut else lines


def nothing_graded(track: GradedTrack) -> str:
    """Return why no passage of the pool has a rating, and what to do."""
    counts = track.counts
    if counts.unparsed + counts.refused + counts.error:
        return nothing_read(track)
    if counts.passages and counts.passages == counts.no_text:
        return f"none of the {counts.passages:,} pooled passages has a text to grade; see out/rejected.tsv"
    file, watch = track.folder.recorded(), f"`trecexam watch {quoted(track.folder.root)} --once`"
    if file is not None and track.grader.identity.get("grader") == "recorded":
        return f"nothing is graded yet; {watch} takes what {track.folder.shown(file)} has of this pool"
    return f"nothing is graded yet; {watch} grades"


def nothing_read(track: GradedTrack) -> str:
    """Return how many of the grader's answers are of which kind, an example, and what to set."""
    counts, root, section = track.counts, quoted(track.folder.root), track.folder.section
    line = (
        f"the grader gave no rating: of {counts.unparsed + counts.refused + counts.error:,} answers "
        f"{counts.unparsed:,} are unparsed, {counts.refused:,} refused, {counts.error:,} errors"
    )
    if track.grader.identity.get("grader") != "recorded":
        answer = track.grades.unparsed_answer(track.sheets) if counts.unparsed else None
        if answer is not None:
            line += f", {unread_line(answer, section)}"
        if none_is_read(track):
            again = f"`trecexam watch {root} --retry-errors`"
            line += f"; it is asked again after a change of [{section}], or with {again}"
    return f"{line}; see `trecexam verify grading {root}`"


def resolve_min_rating(track: GradedTrack, min_rating: int | None) -> int:
    """Return the rating, or the setting `min_rating`."""
    if min_rating is None:
        return track.config.scores.min_rating
    most = track.grader.scale.max_rating
    if min_rating > most:
        raise TrecexamError(f"no rating reaches {min_rating}: the grader rates 0..{most}")
    return min_rating


# Runs


def left_out_runs(track: GradedTrack) -> Iterator[str]:
    """Yield a note on runs that are left out, and the setting that brings them back."""
    n, folder, noun = track.inputs.left_out_runs, track.folder, "run"
    if not track.kind.ranks:
        why = "without citations"
    elif track.config.track.unit == "response":
        section, noun = "track" if folder.grader is None else folder.section, "ranked run"
        why = f'by `unit = "response"` in [{section}]; `unit = "passage"` grades ranked runs too'
    else:
        # One of several graders looks at some of the runs alone.
        which = folder.whole.graders[track.name].runs if n else ""
        why = f'by `runs = "{which}"` in [graders.{track.name}]'
    if n:
        yield Note(f"skipped {plural(n, noun)} {why}", METHOD)


@memoized
def encoder_cautions(track: GradedTrack) -> tuple[str, ...]:
    """Return a note that names the runs nearer to the grader's encoder than chance allows."""
    if track.grader.cosines is None or len(track.runs) < MIN_RUNS:
        return ()
    names = list(track.runs)
    alike = [names[row] for row in runs_like_encoder(encoder_agreements(track))]
    line = (
        "passages much in the order of the grader's encoder, so scores are likely too high: "
        f"{shorten_list(alike, quote='')}; leave such runs out, or use another grader"
    )
    return (Note(line, CHANGES),) if alike else ()


def encoder_agreements(track: GradedTrack) -> NDArray[np.float64]:
    """Return how far each run ranks as the grader's encoder does: see `agreements_of_runs`."""
    # The last cosine is for rank -1.
    return agreements_of_runs(
        np.append(highest_cosines(track, sheet), np.nan)[track.pool[query_id].ranks]
        for query_id, sheet in track.sheets.items()
    )


def highest_cosines(track: GradedTrack, sheet: Sheet) -> NDArray[np.float64]:
    """Return each passage's highest cosine, NaN where it has none; kept with the sheet."""
    if highest_cosines not in sheet.memo:
        cosines = track.grades.cosines(sheet)
        if cosines is None or not cosines.shape[1]:
            cosines = np.full((len(sheet.doc_ids), 1), np.nan)
        sheet.memo[highest_cosines] = np.fmax.reduce(cosines, axis=1)
    highest: NDArray[np.float64] = sheet.memo[highest_cosines]
    return highest


def run_grades_notes(track: GradedTrack) -> Iterator[str]:
    """Name the runs without a grade, and those of which a part of the cells has one."""
    if not track.counts.is_graded or not track.runs:
        return
    unscored = runs_without_score(track)
    if unscored:
        yield without_score_note([run for run in track.runs if run in unscored])
    partly = {run: of_run for run, of_run in partly_graded(track).items() if run not in unscored}
    if partly:
        worst_first = sorted(partly, key=lambda run: (partly[run][0] / partly[run][1], run))
        shares = [f"{run} {partly[run][0]:,} of {partly[run][1]:,}" for run in worst_first]
        listed = shorten_list(shares, _NAMED, quote="")
        yield Note(f"partly graded, so scores may be too low; cells with a grade: {listed}", CHANGES)


def without_score_note(runs: Sequence[str]) -> str:
    """Name runs without a grade."""
    return Note(f"no scores, since no cell has a grade: {shorten_list(runs, _NAMED, quote='')}", CHANGES)


# Queries


def coverage_notes(
    track: GradedTrack, board: Leaderboard, query_ids: Collection[str], of: str = "bank"
) -> Iterator[str]:
    """Yield notes on queries of the bank (or `of` what they are) that no run answers, or that runs skip."""
    answered = {row.run: row.n_answered for row in board.rows}
    if track.config.scores.average == "answered":
        if skipping := sum(n < len(query_ids) for n in answered.values()):
            yield (
                "means are over the queries that each run answered (`average` in [scores]), which flatters "
                f"runs that skip queries: {skipping:,} of {plural(len(answered), 'run')}"
            )
        return
    of_any = {query_id for run in track.runs.values() for query_id in run.query_ids}
    skipped = [query_id for query_id in query_ids if query_id not in of_any]
    if skipped and track.runs:
        yield (
            f"in no run, and so 0: {len(skipped):,} of the {plural(len(query_ids), 'query')} of the {of}: "
            f"{shorten_list(skipped, quote='')}"
        )
    yield from skipping_cautions(answered, len(query_ids))


# Measures


def pool_cautions(track: GradedTrack, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield a note on measures that depend on the pool, where the pool is of the track's runs alone."""
    names = printed_names(each for each in map(measure, measures) if depends_on_pool(each))
    alone = track.pooled_of_runs_alone
    if not names or not alone or not track.runs:
        return
    where = ""
    if track.config.track.pool_judged:
        where = f" for {len(alone):,} of {plural(len(track.bank.query_ids), 'query')}"
        helps = "`pool_judged` in [track] adds nothing there, for lack of official judgments"
    elif track.official is None:
        helps = "report how many runs were pooled, and to which depth"
    else:
        helps = "`pool_judged = true` in [track] adds the passages of official judgments"
    line = (
        f"values of {', '.join(names)} depend on this pool of {plural(len(track.runs), 'run')}{where}; "
        f"do not compare them with values from other pools; {helps}"
    )
    yield Note(line, METHOD)


def depth_cautions(track: GradedTrack, measures: Iterable[MeasureLike]) -> Iterator[str]:
    """Yield a note on measures deeper than the pool, but the track's own, where runs have passages there."""
    track_measures = {*printed_names(map(measure, (*track.measures, *track.columns)))}
    deeper = [each for each in map(measure, measures) if each.params.get("cutoff", 0) > track.depth]
    names = [name for name in printed_names(deeper) if name not in track_measures]
    # Of qrels that are grades all passages that they name are graded.
    if not names or track.grader.known_passages is not None:
        return
    if any(run.count(query) > track.depth for run in track.runs.values() for query in run.query_ids):
        caution = f"deeper than the pool (depth {track.depth}), outside which nothing is relevant"
        yield Note(f"{caution}: {', '.join(names)}", CHANGES)


def telling_cautions(track: GradedTrack, board: Leaderboard, *, official: bool = False) -> Iterator[str]:
    """Yield a note where no run has as many ranks as P looks at, or all runs have an equal value.

    Generated responses have no ranks.
    """
    measures = [measure(name) for name in board.measures]
    means = [row.scores[0].mean for row in board.rows if measures and row.scores[0].exists]
    ranked = [track.runs[row.run] for row in board.rows if row.run not in track.responses]
    precision = next((each for each in measures if each.NAME == "P"), None)
    parts, other, n_ranks = [], None, 0
    if not means:
        return
    lengths = (run.count(query) for run in ranked for query in run.query_ids)
    if precision is not None and ranked and all(length < precision["cutoff"] for length in lengths):
        n_ranks = max((run.count(query) for run in ranked for query in run.query_ids), default=0)
        share, other = number(n_ranks / precision["cutoff"]), precision(cutoff=n_ranks) if n_ranks else None
        parts.append(f"no run has more than {plural(n_ranks, 'rank')}, so {precision} is at most {share}")
    if len(means) > 1 and len({round(mean, TIE_DECIMALS) for mean in means}) == 1:
        depth = n_ranks or measures[0].params.get("cutoff", 10)
        other = measure(f"nDCG@{depth}") if track.of_documents and measures[0].NAME != "nDCG" else None
        parts.append(f"all {len(means):,} runs have the same {board.measures[0]}")
    if parts:
        grader = f"{track.name}:" if track.folder.grader and not official else ""
        see = "" if other is None else f": ask for {grader}{other}"
        yield Note(f"{'; '.join(parts)}{see}", CHANGES)


def judgment_cautions(track: GradedTrack, measures: Sequence[MeasureLike] | None = None) -> Iterator[str]:
    """Yield a note on official measures (None: the own) that count from 1, if `min_relevant` is not 1."""
    scores = track.config.scores
    at_default = list(with_default_rel(official_measures(track) if measures is None else measures))
    if not at_default:
        return
    at = relevance_thresholds(track)
    best = max((row.relevance for row in track.official or ()), default=0)
    threshold = at.min_relevant if at.same_scale else scores.min_relevant
    if threshold > 1:
        yield counting_note(at_default, "judgments from 1", threshold)
    elif best > 1 and "min_relevant" not in scores.model_fields_set:
        line = (
            f"judgments from 1 on count in {', '.join(printed_names(at_default))}, and labels go up to "
            f"{best}: set `min_relevant` in [scores] to the label from which a passage is relevant, 2 in "
            "TREC DL"
        )
        yield Note(line, CHANGES)


def _of_settings(track: GradedTrack) -> Iterator[str]:
    """Yield notes on the track's own measures, where they say little of its runs or ignore weights."""
    of_items = {str(each) for each in weighted(track.measures) if each["weights"] == ITEM}
    others = [name for name in track.measures if str(measure(name)) not in of_items]
    if others and track.bank.n_against:
        yield (
            f"{track.bank.n_against:,} of {len(track.bank):,} items have a negative weight, and count "
            f"against in measures with weights={ITEM!r} alone: for labels and for {', '.join(others)} they "
            "are like others"
        )
    generated, first = track.inputs.dropped.generated.intersection(track.runs), measure(track.measures[0])
    by_ranks = track.config.scores.measures is None and track.kind.ranks
    if by_ranks and first.NAME not in COVER | DIVERSITY and 0 < len(generated) < len(track.runs):
        cover = next(name for name in track.measures if measure(name).NAME in COVER)
        yield (
            f"generated responses ({len(generated):,} of {len(track.runs):,} runs) fill few ranks and have "
            f"little {first} whatever they say: compare them with ranked runs by {cover}"
        )


def first_measure_note(track: GradedTrack) -> Iterator[str]:
    """Yield a note where the leaderboard of all graders goes by another measure than this one's first."""
    first, column = (str(measure(names[0])) for names in (track.measures, track.columns))
    if track.folder.is_one_of_several and first != column:
        yield Note(
            f"by {first}, the first measure of [{track.folder.section}]; the leaderboard of all graders goes "
            f'by {column}: -m "{column}" takes that one',
            CHANGES,
        )


def board_notes(
    track: GradedTrack, board: Leaderboard, measures: Sequence[MeasureLike] | None = None
) -> tuple[str, ...]:
    """Return the notes on a leaderboard on the grades; `measures` were asked for, None for the own ones."""
    names = track.measures if measures is None else board.measures
    of_support = [name for name in board.measures if name in SUPPORT]
    ranked = [row for row in board.rows if row.run not in track.responses] if of_support else []
    some = f"{len(ranked):,} of {plural(len(board.rows), 'run')}"
    return (
        # What makes a value too low comes first: people are shown a few notes.
        *left_out_runs(track),
        *run_grades_notes(track),
        *coverage_notes(track, board, track.bank.query_ids),
        *order_cautions(track.runs),
        *encoder_cautions(track),
        *without_vital(names, track.bank),
        *(_of_settings(track) if measures is None else ()),
        *without_probabilities(track, names),
        *(() if measures is None else depth_cautions(track, names)),
        *telling_cautions(track, board),
        *above_scale(board.measures, track.config, track.grader.scale.max_rating),
        *([f"{some}: no generated responses, so 0 in {', '.join(of_support)}"] if ranked else ()),
        *rating_cautions(track.config, track.measures if measures is None else measures),
        *pool_cautions(track, board.measures),
    )
