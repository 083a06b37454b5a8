"""What filling is about: what was asked for, the holes that there are, and the merged judgments."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from converters.fields import warn_of_comments
from converters.records import NOT_JUDGED
from converters.trec_qrels import qrels_line
from trecexam.features.fill.arithmetic.merging import Machine, MergedRow
from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
from trecexam.features.fill.teaching import GRADER
from trecexam.files.stamps import Rejected
from trecexam.line.official import Official
from trecexam.line.sources import UNJUDGED, write_with_provenance
from trecexam.tables.notes import LOST, METHOD, Note
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_tsv
from trecexam.tables.text import plural

HEADER = (
    "query_id",
    "iteration",
    "doc_id",
    "label",
    "source",
    "grader",
    "model",
    "prompt",
    "rating",
    "confidence",
    "rule",
    "who",
    "why",
)


@dataclass(frozen=True)
class FillRequest:
    """What is to be filled, and how: the arguments of `track.fill.find`."""

    qrels: Path | None = None
    depth: int | None = None
    rule: RuleName | None = None
    cuts: Mapping[int, int] = field(default_factory=dict)
    as_unjudged: bool = False
    by: str | None = None


@dataclass(frozen=True)
class HolesToFill(Result):
    """The holes of a track, before anything is graded: how many each query has, and which (`holes`).

    Attributes:
        request: what was asked for.
        official: the human judgments: those of the file, and those of the track's people.
        holes: query_id -> doc_ids, sorted; only queries with holes.
        depth: first ranks of each run in which holes are filled.
        pool_depth: ranks in which grades are looked at, to fit a rule: at least the track's depth.
        pooled: passages in the first `depth` ranks, `judged` of them with a judgment.
        missing: cells of the holes that have no grade yet.
        rule: what gives official labels for automatic ones, as far as there are grades now; of learned
            labels, it in words.
        remarks: what people should know of it, however it is filled.
        rejected: runs, or lines of them, that were rejected: their passages are not in the pool.
        way: by what they are filled: "grader" or "learned"; "none" where people's judgments alone are added.
        n_other_scale: holes that are left, since people rated the passage as a whole on the grader's scale.
        notes: the remarks, and what is to be said of the rule, as of now.
    """

    request: FillRequest
    official: Official
    holes: Mapping[str, tuple[str, ...]]
    depth: int
    pool_depth: int
    pooled: int
    judged: int
    missing: int
    rule: ScaleMap | str
    remarks: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    way: str = GRADER
    n_other_scale: int = 0
    notes: tuple[str, ...] = ()

    @property
    def n_holes(self) -> int:
        """How many passages are to be filled."""
        return sum(map(len, self.holes.values()))

    def _declare(self) -> dict[str, Table]:
        """A row for each query with holes; and one for each hole."""
        counts = tuple((query_id, len(docs)) for query_id, docs in self.holes.items() if docs)
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
            "by": self.way,
            "rule": str(self.rule),
        }

    def summary(self) -> str:
        """How much there is to fill, in a line."""
        people = f" and {len(self.official.people):,} by people of this track" if self.official.people else ""
        return (
            f"{self.official.source}: {plural(len(self.official.rows), 'judgment')}{people}; of the "
            f"{plural(self.pooled, 'passage')} pooled to depth {self.depth:,} {self.judged:,} are judged; "
            f"{plural(self.n_holes, 'hole')} to fill, {plural(self.missing, 'cell')} to grade"
        )


@dataclass(frozen=True)
class Filled(Result):
    """Merged judgments: who said how many lines of each label.

    Attributes:
        found: what was to be filled.
        rows: the lines and who said each; the official ones first, in their order.
        rule: what gave official labels for automatic ones; of learned labels, it in words.
        graded: cells that were graded for it now.
        filled: lines that are new.
        no_text: holes that remain since the passage has no gradable text.
        no_grade: holes that remain since the grader gave no rating.
        partly: filled passages that have no rating on some of the items, which count as not reached.
        notes: the remarks on what was to be filled, and what came of it.
    """

    found: HolesToFill
    rows: tuple[MergedRow, ...]
    rule: ScaleMap | str
    graded: int
    filled: int
    no_text: int
    no_grade: int
    partly: int
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """A row for each source and label, as written."""
        counts = sorted(Counter((row.source, row.qrel.relevance) for row in self.rows).items())
        return {"lines": Table(("source", "label", "lines"), tuple((*key, n) for key, n in counts))}

    @property
    def facts(self) -> dict[str, Any]:
        """What was to be filled, and how many lines are new, and holes remain."""
        names = ("graded", "filled", "no_text", "no_grade", "partly")
        counts = {name: getattr(self, name) for name in names}
        return {**self.found.facts, "rule": str(self.rule), **counts}

    @property
    def rejected(self) -> tuple[Rejected, ...]:  # type: ignore[override]
        """Runs, or lines of them, that were rejected."""
        return self.found.rejected

    def told(self, output: Path | None = None, sources: Path | None = None) -> Filled:
        """The same, with all that people should know of it in its notes."""
        lines = [*self.found.remarks]
        lines += [Note(f"graded {plural(self.graded, 'cell')}", METHOD)] if self.graded else []
        lines += [*self.notes, Note(f"labels: {self.rule}", METHOD)]
        if self.partly:
            lines.append(
                f"{plural(self.partly, 'passage')} without a rating on some items, which count as not reached"
            )
        if self.no_text:
            no_text = f"not filled: {plural(self.no_text, 'hole')} whose passage has no text to grade"
            lines.append(Note(no_text, LOST))
        if self.no_grade:
            no_grade = f"not filled: {plural(self.no_grade, 'hole')} that no grader rated"
            lines.append(Note(no_grade, LOST))
        if output is not None:
            by_people = len(self.found.official.people)
            people = f", {plural(by_people, 'judgment')} by people of this track" if by_people else ""
            n_human = sum(row.source == "human" for row in self.rows) - by_people
            written = (
                f"{output}: {plural(n_human, 'human judgment')} as before{people}, and "
                f"{plural(self.filled, 'new line')}; who said what: {sources}"
            )
            lines.append(Note(written, LOST))
        return replace(self, notes=tuple(lines))

    @property
    def complete(self) -> bool:
        """Whether no hole remains and every run was accepted."""
        return not (self.no_text or self.no_grade or self.found.n_other_scale or self.found.rejected)

    @property
    def qrels(self) -> bytes:
        """The merged qrels as a file."""
        return merged_qrels(self.rows)

    @cached_property
    def sources(self) -> Table:
        """Who said each line: a row for each, in the same order."""
        return sources_table(self.rows, str(self.rule))

    def write(self, output: Path, sources: Path) -> list[Path]:
        """Writes both files and whose labels they are, or none; a file that has its content is left alone.

        Those whose names end in .gz are compressed.

        Raises:
            TrecexamError: they cannot be written; the old ones are as they were.
        """
        warn_of_comments(row.qrel.query_id for row in self.rows)
        contents = {sources: to_tsv(self.sources).encode(), output: self.qrels}
        contents = {
            path: gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
            for path, content in contents.items()
        }
        machines = {row.machine for row in self.rows if row.machine is not None}
        names = zip(*((each.grader, each.model, each.prompt) for each in machines), strict=True)
        by = tuple("; ".join(sorted(set(of_all) - {""})) for of_all in names) or ("", "", "")
        n_by_source = Counter(
            UNJUDGED if row.qrel.relevance == NOT_JUDGED else row.source for row in self.rows
        )
        return write_with_provenance(output, contents, "fill", by, n_by_source)


def merged_qrels(rows: Sequence[MergedRow]) -> bytes:
    """The lines in their order, as trec_eval takes them."""
    return b"".join(qrels_line(row.qrel) for row in rows)


def sources_table(rows: Sequence[MergedRow], rule: str) -> Table:
    """A row for each line, in the same order. `rule` is that of the lines that no person wrote."""
    return Table(HEADER, tuple(_row(row, rule) for row in rows))


def _row(row: MergedRow, rule: str) -> tuple[str | int | float | None, ...]:
    by = row.machine or Machine("")
    return (
        row.qrel.query_id,
        row.qrel.iteration,
        row.qrel.doc_id,
        row.label,
        row.source,
        by.grader,
        by.model,
        by.prompt,
        row.rating,
        row.confidence,
        "" if row.machine is None else rule,
        row.who,
        row.why,
    )
