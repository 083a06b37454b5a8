"""Results of simulations: changes of runs and leaderboards, with holes and filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.simulation.arithmetic.left_out import LeftOut, Shift
    from trecexam.extensions.simulation.arithmetic.removal import Removed

#: The two sets of judgments that are compared with all judgments, as columns name them.
HOW = ("holes", "fill")


@dataclass(frozen=True)
class RunsReport(Result):
    """Result of `trecexam simulate`: `runs`, a row per measure and run; `shifts`, per method.

    Attributes:
        depth: ranks in which a passage is had by a run.
        rows: measure by measure, by rank with all judgments.
        shifts: measure -> how far runs move with holes, with fill, and by each other way.
        rule: how automatic labels are mapped where nothing is dropped, in words.
        notes: what a reader must know to read the numbers, one per line.
        others: the other ways to treat what was dropped.
    """

    depth: int
    rows: tuple[LeftOut, ...]
    shifts: Mapping[str, tuple[Shift, ...]]
    rule: str
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()

    def declare(self) -> dict[str, Table]:
        """The tables `runs` and `shifts`."""
        return {"runs": self._runs(), "shifts": self._shifts()}

    @property
    def shown(self) -> tuple[str, ...]:
        """Both tables."""
        return ("runs", "shifts")

    @property
    def facts(self) -> dict[str, Any]:
        """The depth, and the mapping of labels."""
        return {"depth": self.depth, "map": self.rule}

    def _runs(self) -> Table:
        header = ("official_measure", "run", "left_out", "unique", "relevant", "filled")
        first = ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill")
        methods = (*HOW, *self.others)
        columns = (f"{what}.{how}" for what in ("rank", "mean") for how in ("full", *methods))
        return Table(
            (*header, *columns, *(f"tau.{how}" for how in methods), "map", "unfitted"),
            tuple(
                (
                    *(row.measure, row.run, row.left_out, row.unique, row.relevant, row.filled),
                    *(row.full.rank, *(row.by(method).rank for method in methods)),
                    *(row.full.mean, *(row.by(method).mean for method in methods)),
                    *(row.by(method).tau for method in methods),
                    str(row.rule),
                    row.unfitted,
                )
                for row in self.rows
            ),
            layout=Layout(header[:2], first, without=("map", "unfitted")),
        )

    def _shifts(self) -> Table:
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
            layout=Layout(("official_measure", "judgments")),
        )

    def moved(self) -> tuple[str, ...]:
        """A line with the result of each measure."""
        return tuple(
            f"{measure}: a run whose own judgments are missing moves by {_moved(holes)}; "
            f"filled, by {_moved(fill)}"
            + "".join(
                f"; {method}, by {_moved(other)}"
                for method, other in zip(self.others, other_shifts, strict=True)
            )
            for measure, (holes, fill, *other_shifts) in (self.shifts.items() if self.rows else ())
        )


@dataclass(frozen=True)
class RemovalReport(Result):
    """Result of `trecexam simulate --judgments`, a row per measure and step.

    Attributes:
        repeats: how often judgments were drawn.
        seed: of the random numbers.
        rows: measure by measure, step by step.
        rule: how automatic labels are mapped where nothing is dropped, in words.
        notes: what a reader must know to read the numbers, one per line.
        others: the other ways to treat what was dropped.
    """

    repeats: int
    seed: int
    rows: tuple[Removed, ...]
    rule: str
    notes: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """The sampling of judgments, and the mapping of labels."""
        return {"repeats": self.repeats, "seed": self.seed, "map": self.rule}

    def declare(self) -> dict[str, Table]:
        """A row per measure and step."""
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
        keys = ("official_measure", "removed")
        table = Table(
            (*keys, "n_removed", "filled", *header, "unfitted"),
            tuple(
                (
                    *(row.measure, row.removed, row.n_removed, row.filled),
                    *astuple(row.holes),
                    *astuple(row.fill),
                    *(value for method in self.others for value in astuple(row.others[method])),
                    row.unfitted,
                )
                for row in self.rows
            ),
            layout=Layout(
                keys,
                ("tau.holes", "tau.fill"),
                without=("unfitted",),
                interval=f"95% range of a further repeat, from {plural(self.repeats, 'repeat')}",
            ),
        )
        return {"removal": table}


def _moved(shift: Shift) -> str:
    text = f"{shift.mean:.2f} ranks on average"
    return f"{text}, {shift.greatest} at most ({shift.run})" if shift.greatest else text
