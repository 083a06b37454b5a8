"""Notes and rows on a loaded track: what is missing, what was rejected, what makes values too low."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from converters.fields import taken_for_comments
from trecexam.config import CONFIG_NAME
from trecexam.errors import TrecexamError, quoted
from trecexam.files.cache import memoized
from trecexam.files.stamps import Rejected
from trecexam.graders.base import Answer
from trecexam.graders.replies import RAISE_LIMIT
from trecexam.grades.cell_order import missing_rows
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.official import official_measures, relevance_thresholds
from trecexam.grades.run_grades import partly_graded, runs_without_score
from trecexam.grades.sheets import Sheet
from trecexam.inputs.inputs import merge_rejected
from trecexam.inputs.measures import counting_note, printed_names, skipping_cautions, with_default_rel
from trecexam.inputs.track_graders import MeasureLike
from trecexam.results.terminal import cut, printable
from trecexam.results.text import CHANGES, METHOD, Note, plural, shorten_list
from trecexam.scores.encoder_likeness import MIN_RUNS, agreements_of_runs, runs_like_encoder
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.measures import measures_on_qrels

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
    early = f"{plural(n_cut, 'unparsed answer')} cut off ({RAISE_LIMIT} in [grader])"
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
            line += f", {_unread_line(answer, section)}"
        if none_is_read(track):
            again = f"`trecexam watch {root} --retry-errors`"
            line += f"; it is asked again after a change of [{section}], or with {again}"
    return f"{line}; see `trecexam verify grading {root}`"


def _unread_line(answer: Answer, section: str) -> str:
    """Quote a reply that could not be read, and say what to set in a section of trecexam.toml."""
    reply = cut(answer.raw, 60)
    said = f'such as "{reply}"' if reply else "they are empty"
    if answer.cut_at is not None:
        return f"{said}, which {RAISE_LIMIT} in [{section}]"
    return (
        f"{said}: set another `prompt` or `model` in [{section}]; raise `max_new_tokens` if replies end early"
    )


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


def rejected_rows(track: GradedTrack, ungraded: Iterable[Rejected] = ()) -> tuple[Rejected, ...]:
    """Return inputs that were rejected, items that cannot be graded, and `ungraded`, see `left_out`."""
    files = track.folder.bank(optional=True)
    file = track.folder.shown(files[0]) if len(files) == 1 else "the bank"
    lines = [(file, taken_for_comments(track.bank.query_ids))]
    if reason := not_computable(track):
        lines.append((CONFIG_NAME, f"[scores] official_measures: {reason}"))
    return (
        *track.not_taken,
        *(Rejected(where, None, why, "line") for where, why in lines if why),
        *ungraded,
        *(
            Rejected(file, None, f"item '{item.item_id}' {why} ({cells:,} passages not graded on it)", "cell")
            for item, why, cells in track.grades.failed_items(track.sheets)
        ),
    )


def all_rejected(
    track: LoadedTrack, rejected: Mapping[str, Sequence[Rejected]] = MappingProxyType({})
) -> tuple[Rejected, ...]:
    """Return what was rejected of the inputs, and what has no grade, each with file, line and reason.

    Args:
        rejected: what graders did not take, where that is known; else it is looked up.
    """
    if track.is_single:
        return rejected_rows(track.first, left_out(track.first))
    rows = {
        name: rejected[name] if name in rejected else rejected_rows(each, left_out(each))
        for name, each in track.graded_tracks.items()
    }
    return merge_rejected(track.folder, rows)


@memoized
def not_computable(track: GradedTrack) -> str | None:
    """Why the track's own official measures cannot be computed on its judgments; None where they can."""
    try:
        measures_on_qrels(track.config.official_measures(), track.official or ())
    except ValueError as error:
        return None if track.official is None else str(error)
    return None


def left_out(track: GradedTrack) -> Iterator[Rejected]:
    """A row where the grader gave no grade to cells that it was asked about.

    None of qrels: a passage without a label is no fault of theirs, and the notes on all results say so.
    """
    counts, folder = track.counts, track.folder
    if counts.missing and not without_label(track):
        row = next(missing_rows(track))
        cell = row.cell(track, int(row.columns[0]))
        # Where all are, nothing has a score.
        meaning = ", which count as not relevant" if track.counts.is_graded else ""
        yield Rejected(
            folder.shown(folder.recorded() or folder.config_path),
            None,
            f"the grader left {counts.missing:,} of {counts.cells:,} cells without a grade{meaning}: query "
            f"'{cell.query_id}', passage '{cell.doc_id}', item '{cell.item.item_id}' among them",
            "cell",
        )
