"""What to judge next: the passages whose judgment by a person helps most."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trecexam.errors import TrecexamError, quoted
from trecexam.extensions.campaign.judge_next.search import Search, SuggestedJudgment
from trecexam.extensions.campaign.listed import read_columns
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.track_graders import MeasureLike
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.terminal import cut
from trecexam.results.text import plural

#: What `learn` writes into out/.
_LEARNED = "learned.tsv"
#: Letters of a text that a table shows.
_TEXT = 60


@dataclass(frozen=True)
class NextJudgments(Result):
    """What a person should judge next.

    Attributes:
        rows: the suggestions, best first.
        candidates: passages that nobody judged.
        measure: the measure that ranks the runs; "" where no ranking can change.
        could_change: how many of the candidates could change the ranking.
        learned: (query_id, doc_id) -> gain and standard deviation in out/learned.tsv.
        every: whether a terminal shows suggestions that cannot change the ranking, too.
    """

    rows: tuple[SuggestedJudgment, ...]
    candidates: int
    measure: str = ""
    could_change: int = 0
    learned: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    every: bool = False

    def _declare(self) -> dict[str, Table]:
        """`judgments`, with shortened texts; `texts`, with whole ones."""
        keys = ("query_id", "doc_id")
        columns = (
            *keys,
            *(("label", "expected_change", "p_change") if self.measure else ()),
            "runs",
            *(("gain", "sd") if self.learned else ()),
        )
        values = [self._values(row) for row in self.rows]
        judgments = (
            (place, *(row[name] for name in columns), cut(str(row["text"]), _TEXT))
            for place, row in enumerate(values, 1)
        )
        layout = Layout(("place", *keys), ("label", "text", "expected_change", "p_change"))
        header = (*keys, "query_text", "text")
        small = ("expected_change",)
        return {
            "judgments": Table(("place", *columns, "text"), tuple(judgments), small=small, layout=layout),
            "texts": Table(header, tuple(tuple(row[name] for name in header) for row in values)),
        }

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the table, without suggestions that cannot change the ranking unless `every`."""
        if wide or self.every or not self.measure:
            return (self.table,)
        return (replace(self.table, rows=self.table.rows[: self.could_change]),)

    def _values(self, row: SuggestedJudgment) -> dict[str, Value]:
        gain, sd = self.learned.get((row.query_id, row.doc_id), (None, None))
        return {
            "query_id": row.query_id,
            "doc_id": row.doc_id,
            "runs": row.runs,
            "label": row.label,
            "query_text": row.query_text,
            "text": row.text,
            "expected_change": row.expected_change,
            "p_change": row.p_change,
            "gain": gain,
            "sd": sd,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """What the list contains, and the number of candidates."""
        ranked = ("measure", "could_change") if self.measure else ()
        return {name: getattr(self, name) for name in (*ranked, "candidates")}


def could_change_a_ranking(track: GradedTrack) -> bool:
    """Return True where judgments of passages could change the order of the runs."""
    counts = track.counts
    return track.asked.citing is None and len(track.runs) > 1 and counts.cells > 0 and counts.is_graded


def next_judgments(
    track: GradedTrack,
    measure: MeasureLike | None = None,
    *,
    query_ids: Collection[str] = (),
    top: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> NextJudgments:
    """List the unjudged passages whose judgment by a person would change the ranking most, best first."""
    if top is not None and top < 1:
        raise TrecexamError(f"top {top}: give 1 or more, or None for all")
    if track.asked.citing is not None:
        raise TrecexamError(
            f"the grader {track.name} labels citations, and none of them changes a ranking: label them with "
            f"`trecexam serve {quoted(track.folder.root)}`"
        )
    search = Search(track, None if measure is None else str(measure))
    ranked = search.ranked(query_ids, progress)
    found = NextJudgments(
        tuple(ranked[:top]),
        len(ranked),
        search.measure,
        sum(row.order[0] < 0 for row in ranked),
        _learned(track),
    )
    return found.with_notes(*_notes(search, found), *_how_to_judge(track, found))


def _learned(track: GradedTrack) -> dict[tuple[str, str], tuple[float, float]]:
    """Read gains and standard deviations from out/learned.tsv; empty if nothing was learned."""
    path = track.folder.out / _LEARNED
    if not path.exists():
        return {}
    rows = read_columns(path, ("query_id", "doc_id", "gain", "sd"))
    try:
        return {(query_id, doc_id): (float(gain), float(sd)) for query_id, doc_id, gain, sd in rows}
    except ValueError as error:
        raise TrecexamError(f"{error}; run `trecexam learn` again", path=path) from None


def _notes(search: Search, found: NextJudgments) -> Iterator[str]:
    candidates = plural(found.candidates, "unjudged passage")
    if not found.candidates:
        yield "no passage is left to judge"
    elif found.measure:
        changes = f"{found.could_change:,} of {candidates} could change the ranking by {found.measure}"
        others = found.candidates - found.could_change
        listed = len(found.rows) > found.could_change
        more = f"; --top N lists the first N of all, the other {others:,} in the order of retrieval"
        yield f"{changes}{more}" if listed else changes
    else:
        yield f"{candidates}, in the order of retrieval: {search.why}"
    ungraded = sum(row.label is None for row in found.rows) if found.measure else 0
    if ungraded:
        yield f"{plural(ungraded, 'listed passage')} without a grade; `trecexam watch` grades"


def _how_to_judge(track: GradedTrack, found: NextJudgments) -> Iterator[str]:
    """Yield a note with the commands to judge the first suggestion."""
    for row in found.rows[:1]:
        root = quoted(track.folder.root)
        where = [str(track.folder.root), "--query", row.query_id, "--doc", row.doc_id]
        where += ["--grader", track.folder.grader] if track.folder.grader else []
        yield (
            f"to judge: trecexam serve {root}, or "
            f"trecexam override {shlex.join(where)} --rating N --who NAME --why TEXT"
        )
