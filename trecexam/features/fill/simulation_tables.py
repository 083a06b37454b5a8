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
        shifts: measure -> how far runs move with holes, and with fill.
        rule: how automatic labels are mapped where nothing is dropped, in words.
        notes: what a reader must know to read the numbers, a line each.
    """

    depth: int
    rows: tuple[LeftOut, ...]
    shifts: Mapping[str, tuple[Shift, Shift]]
    rule: str
    notes: tuple[str, ...]

    def table(self) -> Table:
        """One row a measure and run."""
        header = ("official_measure", "run", "left_out", "unique", "relevant", "filled")
        places = (f"{what}.{how}" for what in ("rank", "mean") for how in ("full", *HOW))
        return Table(
            (*header, *places, *(f"tau.{how}" for how in HOW)),
            tuple(
                (
                    *(one.measure, one.run, one.left_out, one.unique, one.relevant, one.filled),
                    *(one.full.rank, one.holes.rank, one.fill.rank),
                    *(one.full.mean, one.holes.mean, one.fill.mean),
                    *(one.holes.tau, one.fill.tau),
                )
                for one in self.rows
            ),
        )

    def summary(self) -> Table:
        """One row a measure, and holes or fill."""
        header = ("mean_shift", "greatest_shift", "run", "difference", "tau", "least_tau")
        return Table(
            ("official_measure", "judgments", *header),
            tuple(
                (measure, name, one.mean, one.greatest, one.run, one.difference, one.tau, one.least_tau)
                for measure, pair in self.shifts.items()
                for name, one in zip(HOW, pair, strict=True)
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """Both tables with full precision, the rule of each row, and the notes."""
        rows = [
            {**row, "map": str(one.rule), "unfitted": one.unfitted}
            for row, one in zip(self.table().records(), self.rows, strict=True)
        ]
        return {
            "depth": self.depth,
            "map": self.rule,
            "notes": list(self.notes),
            "summary": self.summary().records(),
            "rows": rows,
        }

    def said(self) -> tuple[str, ...]:
        """The notes, then for each measure a line with what came out."""
        lines = (
            f"{measure}: a run whose own judgments are missing moves by {_moved(holes)}; "
            f"filled, by {_moved(fill)}"
            for measure, (holes, fill) in self.shifts.items()
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
    """

    repeats: int
    seed: int
    rows: tuple[Removed, ...]
    rule: str
    notes: tuple[str, ...]

    def table(self) -> Table:
        """One row a measure and step."""
        header = [
            name
            for how in HOW
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
                (one.measure, one.removed, one.n_removed, one.filled, *astuple(one.holes), *astuple(one.fill))
                for one in self.rows
            ),
        )

    def as_json(self) -> dict[str, Any]:
        """The table with full precision, and the notes."""
        rows = [
            {**row, "unfitted": one.unfitted}
            for row, one in zip(self.table().records(), self.rows, strict=True)
        ]
        return {
            "repeats": self.repeats,
            "seed": self.seed,
            "map": self.rule,
            "notes": list(self.notes),
            "rows": rows,
        }


def _moved(one: Shift) -> str:
    text = f"{one.mean:.2f} ranks on average"
    return f"{text}, {one.greatest} at most ({one.run})" if one.greatest else text
