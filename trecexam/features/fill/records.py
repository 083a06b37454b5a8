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

#: Methods to fill holes; "none" leaves them.
LEARNED, GRADER, NOTHING = "learned", "grader", "none"

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: Progress callback: (texts encoded, texts in all).
Encoded = Callable[[int, int], None]


class Machine(NamedTuple):
    """Name, model and prompt of a grader or an encoder; "" if missing."""

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
        machine: the encoder of the texts.
        notes: warnings, one per line.
    """

    labels: Mapping[str, Mapping[str, HoleLabel]]
    rule: str
    machine: Machine
    notes: tuple[str, ...]


class Advice(NamedTuple):
    """The best method to fill by the last cross-validation.

    Attributes:
        best: the method, "none" for leaving holes; None without a cross-validation of the current state.
        summary: the figures, in a line.
        why: reason why a stored cross-validation is ignored; "" otherwise.
    """

    best: str | None
    summary: str = ""
    why: str = ""


class MergedLine(NamedTuple):
    """A line of merged qrels with the source of its label: a row of the sources file.

    Attributes:
        label: label on the official scale, as in the qrels unless holes are written as unjudged.
        source: "human" (a line of the official judgments, or with `who` a judgment of the track's people),
            "unjudged" (an official line that says `NOT_JUDGED`), "model", "override" (a person rated the
            passage, or items of it, in the grader's place), or "learned".
        grader, model, prompt: source of the grade or of the text vectors; "" for a human line.
        rating: the automatic label on the rubric's scale; for a learned line the expected official label;
            None for a human line.
        confidence: the probability, 0..1, of `rating` by the grader, or of a learned `label`; None if
            unknown.
        rule: the rule from `rating` to the official label; "" for a human line.
        who, why: person and reason of an override or of a judgment of the track's people.
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
    """The holes of a track before grading: counts per query, and the holes (`holes`).

    Attributes:
        official: the human judgments: of the file and of the track's people.
        holes: query_id -> doc_ids, sorted; only queries with holes.
        depth: first ranks of each run in which holes are filled (the track's depth).
        pooled: number of passages in these ranks; `judged` counts those with a judgment.
        missing: number of ungraded cells of holes.
        rule: the rule from automatic to official labels, on current grades; in words for learned labels.
        given_rule: the requested rule; None if the rule is fitted.
        qrels: the file of the official judgments, if it is not the track's.
        as_unjudged: write new lines with the label -1.
        remarks: notes that apply to every method.
        method: "grader" or "learned"; "none" if only people's judgments are added.
        n_other_scale: holes left open because people rated the whole passage on the grader's scale.
        notes: the remarks, and notes on the current rule.
        rejected: rejected runs or lines of runs, whose passages are not in the pool.
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
        """The number of passages to fill."""
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
        """Counts of judgments, passages, holes and cells, and the method and rule of labels."""
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
    """Merged judgments with the source of each line.

    Attributes:
        found: the holes before filling.
        rows: the lines with their sources, official lines first, in their order.
        rule: the rule from automatic to official labels; in words for learned labels.
        graded: number of cells graded by this call.
        no_text: remaining holes without a gradable text.
        no_grade: remaining holes without a rating.
        partly: filled passages without a rating on some items, which count as not reached.
        notes: the remarks of `found`, and notes on the outcome.
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
        """Facts of `found`, and counts of new lines and remaining holes."""
        names = ("graded", "filled", "no_text", "no_grade", "partly")
        return {
            **self.found.facts,
            "rule": str(self.rule),
            **{name: getattr(self, name) for name in names},
        }

    @property
    def rejected(self) -> tuple[Rejected, ...]:  # type: ignore[override]
        """Rejected runs and lines of runs."""
        return self.found.rejected

    @property
    def filled(self) -> int:
        """The number of lines labelled by a grader or an encoder."""
        return sum(bool(row.grader) for row in self.rows)

    @property
    def complete(self) -> bool:
        """True if no hole remains and every run was accepted."""
        return not (self.no_text or self.no_grade or self.found.n_other_scale or self.found.rejected)

    @property
    def qrels(self) -> list[Qrel]:
        """Qrels for trec_eval; with `as_unjudged`, new lines have the label `NOT_JUDGED`."""
        hidden = self.found.as_unjudged
        return [
            Qrel(row.query_id, row.doc_id, NOT_JUDGED if hidden and row.grader else row.label, row.iteration)
            for row in self.rows
        ]

    def write(self, output: Path) -> list[Path]:
        """Write qrels, sources and the metadata of labels, all or none; unchanged files stay untouched.

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
