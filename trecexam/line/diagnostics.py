"""What is missing though nothing was refused: passages without a text, cells that the grader left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError, quoted
from trecexam.files.cache import memoized
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.graders.replies import unread_line
from trecexam.line.normal_forms import differing_in_form
from trecexam.tables.notes import CHANGES, Note
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.inputs import TrackInputs

#: Why there are no scores yet.
NO_RUNS = "no runs yet: drop some into the track's folder for runs"


#: What an answer that names no rating counts as, by `unparsed` in [scores].
POLICY = {
    "zero": "counts as 0",
    "seed": "counts as 1",
    "skip": "gives no rating, and what has no rating at all counts as not relevant",
}


def without_text(
    folder: TrackFolder,
    inputs: TrackInputs,
    ids_with_text: Collection[str],
    depth: int,
    other_ids: Collection[str] = (),
) -> Iterator[Rejected]:
    """A row for each run with pooled documents that no passages file has.

    Args:
        ids_with_text: ids of the documents that have a text.
        depth: ranks of each run that are pooled.
        other_ids: ids that have a text, and are those of lost documents in another normal form.
    """
    for name, run in inputs.runs.items():
        pooled = [
            (query_id, doc_id)
            for query_id in inputs.bank.query_ids
            for doc_id in run.ranking(query_id, depth)
        ]
        lost = [(query_id, doc_id) for query_id, doc_id in pooled if doc_id not in ids_with_text]
        if lost:
            query_id, doc_id = lost[0]
            yield Rejected(
                folder.shown(inputs.dropped.run_files[name]),
                None,
                f"{len(lost):,} of its {len(pooled):,} pooled passages have no text and count as not "
                f"relevant, '{doc_id}' of query '{query_id}' among them"
                f"{differing_in_form(dict.fromkeys(doc for _, doc in lost), other_ids)}",
                "cell",
            )


def is_graded(track: Assessment) -> bool:
    """Whether there is anything to score: no cells at all, or one that the grader or a person rated."""
    counts = track.counts
    return not counts.cells or counts.ok + counts.human_cells + counts.human_passages > 0


def none_is_read(track: Assessment) -> bool:
    """Whether the grader replied, and no reply can be read."""
    counts = track.counts
    return not counts.ok and counts.unparsed + counts.refused > 0


def grades_notes(track: Assessment, *, human: bool = True) -> tuple[str, ...]:
    """What one must know of the grades behind a result: people's, missing ones, answers without a rating.

    Args:
        human: also how many are people's.
    """
    if not is_graded(track):
        return (Note(without_label(track) or nothing_graded(track), CHANGES),)
    lines = (*_missing(track), *unread_answers(track))
    return (*(human_notes(track) if human else ()), *(Note(line, CHANGES) for line in lines))


def human_notes(track: Assessment) -> Iterator[str]:
    """How many grades are people's, and whose, in a line; none where there are none."""
    summary = track.override_summary()
    if summary["who"]:
        yield human_line(summary)


def human_line(summary: Mapping[str, Any]) -> str:
    """How many grades are people's, and whose; `summary` as `override_summary` gives it."""
    return (
        f"a person's rating replaces the grader's in {plural(summary['cells'], 'cell')} and for "
        f"{plural(summary['passages'], 'passage')} as a whole ({', '.join(map(printable, summary['who']))})"
    )


def without_label(track: Assessment) -> str:
    """How many passages have no label, where the grades are qrels: these are of some passages alone. "" where
    all have one, and of all other graders.
    """
    counts, file = track.counts, track.folder.recorded()
    if not counts.missing or file is None or not track.kind.ranks or track.grader.known_passages is None:
        return ""
    lacking = (
        f"{counts.missing:,} of {counts.cells:,} pooled passages have no label in {track.folder.shown(file)}"
    )
    whose = f" --grader {track.folder.grader}" if track.folder.is_one_of_several else ""
    command = f"trecexam holes {quoted(track.folder.root)}{whose}"
    return f"{lacking}, and count as not relevant; `{command}` counts those of each run"


def unread_answers(track: Assessment) -> Iterator[str]:
    """How many of the grader's answers name no rating, and what they count as; none where all do."""
    counts, policy = track.counts, track.config.scores.unparsed
    unread = counts.unparsed + counts.refused + counts.error
    if unread:
        yield (
            f"of the grader's {counts.ok + unread:,} answers {counts.unparsed:,} are unparsed, "
            f'{counts.refused:,} refused and {counts.error:,} errors; the policy "{policy}": each unparsed '
            f"or refused one {POLICY[policy]}"
        )
        yield from cut_answers(track)


def cut_answers(track: Assessment) -> Iterator[str]:
    """Yield how many unparsed answers were cut off, and the remedy; nothing where none was."""
    n_cut = _n_cut(track)
    if n_cut:
        n_answers = plural(n_cut, "unparsed answer")
        yield f"{n_answers} cut off (ends early: raise max_new_tokens in [grader])"


@memoized
def _n_cut(track: Assessment) -> int:
    return track.grades.n_cut(track.sheets)


def _missing(track: Assessment) -> Iterator[str]:
    counts, unlabelled = track.counts, without_label(track)
    if unlabelled:
        yield unlabelled
    elif counts.missing:
        yield (
            f"{counts.missing:,} of {counts.cells:,} cells have no grade; "
            f"`trecexam watch {quoted(track.folder.root)}` grades what the grader can"
        )
    if counts.no_text:
        yield (
            f"{counts.no_text:,} of {counts.passages:,} pooled passages have no text and count as not "
            "relevant"
        )


def nothing_graded(track: Assessment) -> str:
    """Why no passage of the pool has a rating, and what to do."""
    counts = track.counts
    if counts.unparsed + counts.refused + counts.error:
        return nothing_read(track)
    if counts.passages and counts.passages == counts.no_text:
        return f"none of the {counts.passages:,} pooled passages has a text to grade; see out/rejected.tsv"
    file, watch = track.folder.recorded(), f"`trecexam watch {quoted(track.folder.root)} --once`"
    if file is not None and track.grader.identity.get("grader") == "recorded":
        return f"nothing is graded yet; {watch} takes what {track.folder.shown(file)} has of this pool"
    return f"nothing is graded yet; {watch} grades"


def nothing_read(track: Assessment) -> str:
    """Return how many of the grader's answers are of which kind, an example, and what to set."""
    counts, root = track.counts, track.folder.root
    n_answers = counts.unparsed + counts.refused + counts.error
    lines = [
        f"the grader gave no rating: of {n_answers:,} answers {counts.unparsed:,} are unparsed, "
        f"{counts.refused:,} refused, {counts.error:,} errors"
    ]
    is_recorded, section = track.grader.identity.get("grader") == "recorded", track.folder.section
    answer = track.grades.unparsed_answer(track.sheets) if counts.unparsed and not is_recorded else None
    if answer is not None:
        lines[0] += f", {unread_line(answer, section)}"
    if none_is_read(track) and not is_recorded:
        again = f"`trecexam watch {quoted(root)} --retry-errors`"
        lines.append(f"it is asked again after a change of [{section}], or with {again}")
    return "; ".join((*lines, f"see `trecexam verify grading {quoted(root)}`"))


def resolve_min_rating(track: Assessment, min_rating: int | None) -> int:
    if min_rating is None:
        return track.config.scores.min_rating
    most = track.grader.scale.max_rating
    if min_rating > most:
        raise TrecexamError(f"no rating reaches {min_rating}: the grader rates 0..{most}")
    return min_rating
