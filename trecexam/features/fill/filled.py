"""What filling is about: what was asked for, the holes that there are, and the merged judgments."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from converters.fields import warn_of_comments
from trecexam.features.fill.sources import merged_qrels, sources_table
from trecexam.features.fill.teaching import GRADER
from trecexam.files import atomic as files
from trecexam.line.official import Official
from trecexam.tables.table import Table, to_tsv

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.merging import MergedRow
    from trecexam.features.fill.arithmetic.scale_map import RuleName, ScaleMap
    from trecexam.files.stamps import Rejected


@dataclass(frozen=True)
class FillRequest:
    """What is to be filled, and how.

    Attributes:
        qrels: the official judgments, in place of the track's.
        depth: ranks of each run that are pooled; None for the track's.
        rule: how automatic labels become official ones; None: "fitted" where it can be, else "identity".
        cuts: automatic label -> official label, of "thresholds"; empty: min_rating -> min_relevant.
        as_unjudged: the new lines get a negative label.
        by: "grader" or "learned"; None: what is said in `trecexam.features.fill.ways.choose_way`.
    """

    qrels: Path | None = None
    depth: int | None = None
    rule: RuleName | None = None
    cuts: Mapping[int, int] = field(default_factory=dict)
    as_unjudged: bool = False
    by: str | None = None


@dataclass(frozen=True)
class HolesToFill:
    """The holes of a track, before anything is graded.

    Attributes:
        request: what was asked for.
        official: the human judgments.
        holes: query_id -> doc_ids, sorted; only queries with holes.
        depth: first ranks of each run in which holes are filled.
        pool_depth: ranks in which grades are looked at, to fit a rule: at least the track's depth.
        pooled: passages in the first `depth` ranks, of which `judged` have an official judgment.
        missing: cells of the holes that have no grade yet.
        rule: what gives official labels for automatic ones, as far as there are grades now; of learned
            labels, it in words.
        notes: what people should know of it, a line each; of the rule, `rule_notes`.
        rejected: runs, or lines of them, that were not taken: their passages are not in the pool.
        way: by what they are filled: "grader" or "learned".
        grades: of "learned", whether the grader's ratings are features.
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
    notes: tuple[str, ...]
    rule_notes: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    way: str = GRADER
    grades: bool = True

    @property
    def n_holes(self) -> int:
        """How many passages are to be filled."""
        return sum(map(len, self.holes.values()))


@dataclass(frozen=True)
class Filled:
    """Merged judgments.

    Attributes:
        found: what was to be filled.
        rows: the lines and who said each; the official ones first, in their order.
        rule: what gave official labels for automatic ones; of learned labels, it in words.
        graded: cells that were graded for it now.
        filled: lines that are new.
        no_text: holes that remain since the passage has no gradable text.
        no_grade: holes that remain since the grader gave no rating.
        partly: filled passages that have no rating on some of the items, which count as not reached.
        notes: what people should know of it beside `found.notes`, a line each.
    """

    found: HolesToFill
    rows: tuple[MergedRow, ...]
    rule: ScaleMap | str
    graded: int
    filled: int
    no_text: int
    no_grade: int
    partly: int
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no hole remains and every run was taken."""
        return not (self.no_text or self.no_grade or self.found.rejected)

    @property
    def qrels(self) -> bytes:
        """The merged qrels as a file."""
        return merged_qrels(self.rows)

    @cached_property
    def sources(self) -> Table:
        """Who said each line: a row for each, in the same order."""
        return sources_table(self.rows, str(self.rule))

    def write(self, output: Path, sources: Path) -> list[Path]:
        """Writes both files, or neither; what is there already with this content is left alone.

        Those whose names end in .gz are compressed.

        Raises:
            TrecexamError: they cannot be written; the old ones are as they were.
        """
        warn_of_comments(row.qrel.query_id for row in self.rows)
        contents = {sources: to_tsv(self.sources).encode(), output: self.qrels}
        return files.replace_together(
            {
                path: gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
                for path, content in contents.items()
            }
        )
