"""Records of filling: the holes, labels learned from judgments, and the merged judgments."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from converters.fields import warn_of_comments
from converters.records import NOT_JUDGED, Qrel
from converters.trec_qrels import qrels_line
from trecexam.features.fill.rules import ScaleMap
from trecexam.files.stamps import Rejected
from trecexam.inputs.official import Official
from trecexam.inputs.sources import UNJUDGED, sources_beside, write_with_provenance
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv

#: Ways to fill, and to leave holes.
LEARNED, GRADER, NOTHING = "learned", "grader", "none"

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: Called with how many texts are encoded, and of how many.
Encoded = Callable[[int, int], None]


class Machine(NamedTuple):
    """The name, model and prompt of a grader, or of an encoder of texts; "" where it has none."""

    grader: str
    model: str = ""
    prompt: str = ""


class HoleLabel(NamedTuple):
    """A hole's label on the official scale, its expected label, and the label's probability, if known."""

    label: int
    gain: float
    confidence: float | None


class TaughtLabels(NamedTuple):
    """Labels of a track's pool, learned from its judgments.

    Attributes:
        labels: query_id -> doc_id -> label of the pooled passages.
        rule: how a gain becomes a label, in words.
        machine: what encoded the texts.
        notes: what a reader must know, one per line.
    """

    labels: Mapping[str, Mapping[str, HoleLabel]]
    rule: str
    machine: Machine
    notes: tuple[str, ...]


class Advice(NamedTuple):
    """The best way to fill by the last cross-validation.

    Attributes:
        best: the way, "none" for leaving holes; None without a cross-validation of the current state.
        summary: the figures, in a line.
        why: why a stored cross-validation does not count, in a line; "" where there is none.
    """

    best: str | None
    summary: str = ""
    why: str = ""


class MergedLine(NamedTuple):
    """A line of merged qrels, and the source of its label: a row of the file of sources.

    Attributes:
        label: on the official scale. It is in the qrels, unless holes are written as unjudged.
        source: "human" (a line of the official judgments, or with `who` a judgment of the track's people),
            "unjudged" (an official line that says `NOT_JUDGED`), "model", "override" (a person rated the
            passage, or items of it, in the grader's place), or "learned".
        grader, model, prompt: what graded it, or encoded its texts; "" of a human line.
        rating: the automatic label on the rubric's scale; of a learned line the expected label on the
            official one; None of a human line.
        confidence: the probability, 0..1, of `rating` after the grader, or of a learned `label`; None where
            there is none.
        rule: what gave the official label for `rating`; "" of a human line.
        who, why: of an override, and of a judgment of the track's people.
    """

    query_id: str
    iteration: str
    doc_id: str
    label: int
    source: str
    grader: str = ""
    model: str = ""
    prompt: str = ""
    rating: float | None = None
    confidence: float | None = None
    rule: str = ""
    who: str = ""
    why: str = ""


@dataclass(frozen=True)
class HolesToFill(Result):
    """The holes of a track, before anything is graded: how many each query has, and which (`holes`).

    Attributes:
        official: the human judgments: those of the file, and those of the track's people.
        holes: query_id -> doc_ids, sorted; only queries with holes.
        depth: first ranks of each run in which holes are filled, the track's.
        pooled: passages in these ranks, `judged` of them with a judgment.
        missing: cells of the holes that have no grade yet.
        rule: what gives official labels for automatic ones, as far as there are grades now; of learned
            labels, it in words.
        given_rule: the rule that was asked for; None where it is fitted.
        qrels: the file of the official judgments, if it is not the track's.
        as_unjudged: new lines are written with the label -1.
        remarks: the notes that hold however the holes are filled.
        method: how they are filled: "grader" or "learned"; "none" where people's judgments alone are added.
        n_other_scale: holes that are left, since people rated the passage as a whole on the grader's scale.
        notes: the remarks, and notes on the rule, as of now.
        rejected: runs, or lines of them, that were rejected: their passages are not in the pool.
    """

    official: Official
    holes: Mapping[str, tuple[str, ...]]
    depth: int
    pooled: int
    judged: int
    missing: int
    rule: ScaleMap | str
    given_rule: ScaleMap | None
    qrels: Path | None
    as_unjudged: bool
    remarks: tuple[str, ...]
    method: str
    n_other_scale: int
    notes: tuple[str, ...]
    rejected: tuple[Rejected, ...] = ()

    @property
    def n_holes(self) -> int:
        """How many passages are to be filled."""
        return sum(map(len, self.holes.values()))

    def _declare(self) -> dict[str, Table]:
        """Return a row for each query with holes; and one for each hole."""
        counts = tuple((query_id, len(docs)) for query_id, docs in self.holes.items())
        holes = tuple((query_id, doc) for query_id, docs in self.holes.items() for doc in docs)
        return {
            "queries": Table(("query_id", "holes"), counts),
            "holes": Table(("query_id", "doc_id"), holes),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """How many judgments, passages, holes and cells there are, and what gives the labels."""
        return {
            "judgments": len(self.official.rows),
            **({"judged_by_people": len(self.official.people)} if self.official.people else {}),
            "depth": self.depth,
            "pooled": self.pooled,
            "judged": self.judged,
            "n_holes": self.n_holes,
            "missing": self.missing,
            "by": self.method,
            "rule": str(self.rule),
        }


@dataclass(frozen=True)
class Filled(Result):
    """Merged judgments: who said how many lines of each label.

    Attributes:
        found: what was to be filled.
        rows: the lines and who said each; the official ones first, in their order.
        rule: what gave official labels for automatic ones; of learned labels, it in words.
        graded: cells that were graded for it now.
        no_text: holes that remain since the passage has no gradable text.
        no_grade: holes that remain since the grader gave no rating.
        partly: filled passages that have no rating on some of the items, which count as not reached.
        notes: the remarks on what was to be filled, and what came of it.
    """

    found: HolesToFill
    rows: tuple[MergedLine, ...]
    rule: ScaleMap | str
    graded: int = 0
    no_text: int = 0
    no_grade: int = 0
    partly: int = 0
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """Return a row for each source and label, as written."""
        written = zip(self.rows, self.qrels, strict=True)
        counts = sorted(Counter((row.source, qrel.relevance) for row, qrel in written).items())
        return {"lines": Table(("source", "label", "lines"), tuple((*key, n) for key, n in counts))}

    @property
    def facts(self) -> dict[str, Any]:
        """What was to be filled, and how many lines are new, and holes remain."""
        names = ("graded", "filled", "no_text", "no_grade", "partly")
        return {
            **self.found.facts,
            "rule": str(self.rule),
            **{name: getattr(self, name) for name in names},
        }

    @property
    def rejected(self) -> tuple[Rejected, ...]:  # type: ignore[override]
        """Runs, or lines of them, that were rejected."""
        return self.found.rejected

    @property
    def filled(self) -> int:
        """How many lines have a label that no person gave in the first place."""
        return sum(bool(row.grader) for row in self.rows)

    @property
    def complete(self) -> bool:
        """True where no hole remains and every run was accepted."""
        return not (self.no_text or self.no_grade or self.found.n_other_scale or self.found.rejected)

    @property
    def qrels(self) -> list[Qrel]:
        """The lines as trec_eval takes them; new ones say `NOT_JUDGED` where that was asked for."""
        hidden = self.found.as_unjudged
        return [
            Qrel(row.query_id, row.doc_id, NOT_JUDGED if hidden and row.grader else row.label, row.iteration)
            for row in self.rows
        ]

    def write(self, output: Path) -> list[Path]:
        """Write qrels, sources and whose labels they are, or none; a file that has its content is left alone.

        Qrels whose name ends in .gz are compressed.
        """
        warn_of_comments(row.query_id for row in self.rows)
        qrels = self.qrels
        content = b"".join(map(qrels_line, qrels))
        contents = {
            sources_beside(output): to_tsv(Table(MergedLine._fields, self.rows)).encode(),
            output: gzip.compress(content, mtime=0) if output.suffix == ".gz" else content,
        }
        machines = {(row.grader, row.model, row.prompt) for row in self.rows if row.grader}
        by = tuple("; ".join(sorted(set(names) - {""})) for names in zip(*machines, strict=True))
        n_by_source = Counter(
            UNJUDGED if qrel.relevance == NOT_JUDGED else row.source
            for row, qrel in zip(self.rows, qrels, strict=True)
        )
        return write_with_provenance(output, contents, "fill", by or ("", "", ""), n_by_source)
