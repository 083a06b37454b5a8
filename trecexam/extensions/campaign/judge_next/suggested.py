"""Tables of suggested judgments: passages, cells or citations."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from converters.support_labels import LABELS
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, Value
from trecexam.tables.text import beginning

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.line.assessment import Assessment

_EFFECTS = ("expected_swaps", "expected_change", "p_change", "from", "runs")
_COLUMNS = {
    "passage": ("query_id", "doc_id", "label", *_EFFECTS, "text"),
    "cell": ("query_id", "doc_id", "item_id", "rating", *_EFFECTS, "item_text", "text"),
    "citation": (
        *("query_id", "doc_id", "item_id", "label", "p_change", "expected_change"),
        *("runs", "sentence", "text"),
    ),
}
#: What people see first of these.
_LAYOUT = Layout(
    ("place", "query_id", "doc_id", "item_id"),
    ("label", "rating", "sentence", "item_text", "text", "expected_change", "p_change"),
)


@dataclass(frozen=True)
class SuggestedJudgment:
    """A judgment that a person could make, with the texts that it is about.

    Attributes:
        item: of a cell the item, of a citation the sentence; None where the passage as a whole is judged.
        now: the passage's label, or the rating; None if missing.
        runs: how many runs have the passage's text among their first ranks, or a response with both.
        chances: the probability of each rating, from 0; () where the grader gives none.
        expected_change: by how far the runs' differences are expected to move, or the citation's weight.
        p_change: the probability that a person says something else.
        expected_swaps: pairs of runs that would change places; None of a citation.
        source: where the chances come from; "" of a citation.
    """

    query_id: str
    doc_id: str
    item: Item | None
    now: int | str | None
    runs: int
    chances: tuple[float, ...]
    expected_change: float | None
    p_change: float | None
    query_text: str
    text: str
    expected_swaps: float | None = None
    source: str = ""

    def values(self) -> dict[str, Value]:
        """The columns for all levels, with whole texts."""
        item_id, item_text = (self.item.item_id, self.item.text) if self.item else ("", "")
        return {
            "query_id": self.query_id,
            "doc_id": self.doc_id,
            "item_id": item_id,
            "label": self.now,
            "rating": self.now,
            "from": self.source,
            "runs": self.runs,
            "expected_swaps": self.expected_swaps,
            "expected_change": self.expected_change,
            "p_change": self.p_change,
            "query_text": self.query_text,
            "text": self.text,
            "item_text": item_text,
            "sentence": item_text,
        }


@dataclass(frozen=True)
class NextJudgments(Result):
    """What a person should judge next.

    Attributes:
        level: "passage", "cell", or "citation": a sentence with a passage that it cites.
        candidates: what nobody judged and something can be said of; `judged` is what a person judged.
        ungraded: what has no grade. Passages and cells without one are no candidates, citations are.
        rows: the first to judge first.
        measure, by, n_runs: what runs are ranked by, what the list is ordered by, runs on the leaderboard;
            "" and 0 of citations.
        tied: all runs have the same mean.
        could_change: how many of the candidates could change the ranking; `rows` are the first of these.
        no_text: citations whose passage has no text here: they are left out.
    """

    level: Literal["passage", "cell", "citation"]
    candidates: int
    judged: int
    ungraded: int
    rows: tuple[SuggestedJudgment, ...]
    notes: tuple[str, ...] = ()
    measure: str = ""
    by: str = ""
    n_runs: int = 0
    tied: bool = False
    could_change: int = 0
    no_text: int = 0

    def declare(self) -> dict[str, Table]:
        """`judgments`, with shortened texts; `texts`, with whole ones; `probabilities`, a row per rating."""
        columns = _COLUMNS[self.level]
        keys = tuple(name for name in columns if name.endswith("_id"))
        texts = (
            *keys,
            "query_text",
            *(name for name in columns if name in ("item_text", "sentence", "text")),
        )
        every = [row.values() for row in self.rows]
        judgments = (
            (
                rank,
                *(beginning(str(row[name])) if name in texts[len(keys) :] else row[name] for name in columns),
            )
            for rank, row in enumerate(every, 1)
        )
        chances = (
            (*(values[name] for name in keys), LABELS[rating] if self.level == "citation" else rating, chance)
            for row, values in zip(self.rows, every, strict=True)
            for rating, chance in enumerate(row.chances)
            if chance > 0
        )
        return {
            "judgments": Table(("place", *columns), tuple(judgments), layout=_LAYOUT),
            "texts": Table(texts, tuple(tuple(row[name] for name in texts) for row in every)),
            "probabilities": Table((*keys, "rating", "probability"), tuple(chances)),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """What the list contains, and the number of candidates."""
        ranked = ("measure", "by", "n_runs", "could_change") if self.measure else ("no_text",)
        names = ("level", *ranked, "candidates", "judged", "ungraded")
        return {name: getattr(self, name) for name in names}


def how_to_judge(track: Assessment, row: SuggestedJudgment, ratings: str = "N") -> str:
    """A note with the command to judge this."""
    where = [str(track.folder.root), "--query", row.query_id, "--doc", row.doc_id]
    where += ["--item", row.item.item_id] if row.item else []
    where += ["--grader", track.folder.grader] if track.folder.grader else []
    return (
        f"to judge: trecexam serve {shlex.quote(str(track.folder.root))}, or "
        f"trecexam override {shlex.join(where)} --rating {ratings} --who NAME --why TEXT"
    )
