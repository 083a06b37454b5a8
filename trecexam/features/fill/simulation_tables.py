"""What simulations show: tables, JSON, and a line or two of talk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.left_out import LeftOut, Shift
    from trecexam.features.fill.arithmetic.removal import Removed

#: The two sets of judgments that are compared with all judgments, as columns name them.
HOW = ("holes", "fill")


@dataclass(frozen=True)
class RunsReport:
    """What `trecexam simulate runs` shows.

    Attributes:
        depth: ranks in which a passage is had by a run.
        rows: measure by measure, by rank with all judgments.
        shifts: measure -> how far runs move with holes, with fill, and by each other way.
        rule: how automatic labels are mapped where nothing is dropped, in words.
        notes: what a reader must know to read the numbers, a line each.
        others: the other ways to treat what was dropped.
    """

    depth: int
    rows: tuple[LeftOut, ...]
    shifts: Mapping[str, tuple[Shift, ...]]
    rule: str
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()

    def table(self) -> Table:
        """One row a measure and run."""
        header = ("official_measure", "run", "left_out", "unique", "relevant", "filled")
        ways = (*HOW, *self.others)
        places = (f"{what}.{how}" for what in ("rank", "mean") for how in ("full", *ways))
        return Table(
            (*header, *places, *(f"tau.{how}" for how in ways)),
            tuple(
                (
                    *(row.measure, row.run, row.left_out, row.unique, row.relevant, row.filled),
                    *(row.full.rank, *(row.by(way).rank for way in ways)),
                    *(row.full.mean, *(row.by(way).mean for way in ways)),
                    *(row.by(way).tau for way in ways),
                )
                for row in self.rows
            ),
        )

    def summary(self) -> Table:
        """One row a measure, and holes, fill or another way."""
        header = ("mean_shift", "greatest_shift", "run", "difference", "tau", "least_tau")
        return Table(
            ("official_measure", "judgments", *header),
            tuple(
                (
                    measure,
                    name,
                    shift.mean,
                    shift.greatest,
                    shift.run,
                    shift.difference,
                    shift.tau,
                    shift.least_tau,
                )
                for measure, of_ways in self.shifts.items()
                for name, shift in zip((*HOW, *self.others), of_ways, strict=True)
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """Both tables with full precision, the rule of each row, and the notes."""
        rows = [
            {**row, "map": str(left_out.rule), "unfitted": left_out.unfitted}
            for row, left_out in zip(self.table().records(), self.rows, strict=True)
        ]
        return {
            "depth": self.depth,
            "map": self.rule,
            "notes": list(self.notes),
            "summary": self.summary().records(),
            "rows": rows,
        }

    def summary_lines(self) -> tuple[str, ...]:
        """The notes, then for each measure a line with what came out."""
        lines = (
            f"{measure}: a run whose own judgments are missing moves by {_moved(holes)}; "
            f"filled, by {_moved(fill)}"
            + "".join(f"; {way}, by {_moved(other)}" for way, other in zip(self.others, others, strict=True))
            for measure, (holes, fill, *others) in self.shifts.items()
        )
        return (*self.notes, *(lines if self.rows else ()))


@dataclass(frozen=True)
class RemovalReport:
    """What `trecexam simulate removal` shows.

    Attributes:
        repeats: how often judgments were drawn.
        seed: of the random numbers.
        rows: measure by measure, step by step.
        rule: how automatic labels are mapped where nothing is dropped, in words.
        notes: what a reader must know to read the numbers, a line each.
        others: the other ways to treat what was dropped.
    """

    repeats: int
    seed: int
    rows: tuple[Removed, ...]
    rule: str
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()

    def table(self) -> Table:
        """One row a measure and step."""
        header = [
            name
            for how in (*HOW, *self.others)
            for name in (
                f"tau.{how}",
                f"tau.{how}.low",
                f"tau.{how}.high",
                f"tau_ap.{how}",
                f"difference.{how}",
            )
        ]
        return Table(
            ("official_measure", "removed", "n_removed", "filled", *header),
            tuple(
                (
                    *(row.measure, row.removed, row.n_removed, row.filled),
                    *astuple(row.holes),
                    *astuple(row.fill),
                    *(value for way in self.others for value in astuple(row.others[way])),
                )
                for row in self.rows
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """The table with full precision, and the notes."""
        rows = [
            {**row, "unfitted": removed.unfitted}
            for row, removed in zip(self.table().records(), self.rows, strict=True)
        ]
        return {
            "repeats": self.repeats,
            "seed": self.seed,
            "map": self.rule,
            "notes": list(self.notes),
            "rows": rows,
        }


def _moved(shift: Shift) -> str:
    text = f"{shift.mean:.2f} ranks on average"
    return f"{text}, {shift.greatest} at most ({shift.run})" if shift.greatest else text
