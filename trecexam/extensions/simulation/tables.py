"""Tables of simulations: changes of runs and leaderboards, with holes and filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.simulation.arithmetic.left_out import LeftOut, Shift
    from trecexam.extensions.simulation.arithmetic.removal import Removed


def runs_table(rows: Sequence[LeftOut], methods: Sequence[str]) -> Table:
    """Return a row per measure and run: its rank and mean with all judgments and by each method."""
    header = ("official_measure", "run", "left_out", "unique", "relevant", "filled")
    first = ("rank.full", "rank.holes", "rank.fill", "tau.holes", "tau.fill")
    standings = ("full", *methods)
    columns = (f"{what}.{how}" for what in ("rank", "mean") for how in standings)
    return Table(
        (*header, *columns, *(f"tau.{how}" for how in methods), "map", "unfitted"),
        tuple(
            (
                *(row.measure, row.run, row.left_out, row.unique, row.relevant, row.filled),
                *(row.by[how].rank for how in standings),
                *(row.by[how].mean for how in standings),
                *(row.by[how].tau for how in methods),
                str(row.rule),
                row.unfitted,
            )
            for row in rows
        ),
        layout=Layout(header[:2], first, without=("map", "unfitted")),
    )


def shifts_table(shifts: Mapping[str, Mapping[str, Shift]]) -> Table:
    """Return a row per measure and method: how far runs move without their own judgments."""
    return Table(
        (
            *("official_measure", "judgments", "mean_shift", "greatest_shift", "run", "difference"),
            *("tau", "least_tau"),
        ),
        tuple((measure, how, *astuple(shift)) for measure, of in shifts.items() for how, shift in of.items()),
        layout=Layout(("official_measure", "judgments")),
    )


def moved(shifts: Mapping[str, Mapping[str, Shift]]) -> Iterator[str]:
    """Yield a note with the result of each measure."""
    for measure, of_measure in shifts.items():
        holes, fill, *others = (
            f"{shift.mean:.2f} ranks on average"
            + (f", {shift.greatest} at most ({shift.run})" if shift.greatest else "")
            for shift in of_measure.values()
        )
        more = (f"; {how}, by {other}" for how, other in zip([*of_measure][2:], others, strict=True))
        yield (
            f"{measure}: a run whose own judgments are missing moves by {holes}; filled, by {fill}"
            + "".join(more)
        )


def removal_table(rows: Sequence[Removed], methods: Sequence[str], repeats: int) -> Table:
    """Return a row per measure and share of removed judgments: the agreement by each method."""
    keys = ("official_measure", "removed")
    columns = ("tau.{}", "tau.{}.low", "tau.{}.high", "tau_ap.{}", "difference.{}")
    header = (column.format(how) for how in methods for column in columns)
    return Table(
        (*keys, "n_removed", "filled", *header, "unfitted"),
        tuple(
            (
                *(row.measure, row.removed, row.n_removed, row.filled),
                *(value for how in methods for value in astuple(row.by[how])),
                row.unfitted,
            )
            for row in rows
        ),
        layout=Layout(
            keys,
            ("tau.holes", "tau.fill"),
            without=("unfitted",),
            interval=f"95% range of a further repeat, from {plural(repeats, 'repeat')}",
        ),
    )
