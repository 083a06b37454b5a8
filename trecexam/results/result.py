"""A result of a question about a track: tables by name, notes, facts, plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from trecexam.results import html, view
from trecexam.results.frames import Framed
from trecexam.results.table import Table, Value, to_json, to_tsv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A plot of a result before drawing; `draw` uses only these attributes.

    Attributes:
        name: stem of its files, and prefix of ids in its SVG; letters and underscores.
        title: a few words.
        caption: how to read the plot.
        summary: alternative text.
        table: the plotted numbers.
        draw: draws the plot on an empty figure of any size.
        height: inches in the report.
        settings: further values that `draw` needs.
        rows: True if the height of rows scales with the font size.
    """

    name: str
    title: str
    caption: str
    summary: str
    table: Table
    draw: Callable[[Figure, Plot], None] = field(compare=False)
    height: float
    settings: Mapping[str, Value] = field(default_factory=dict)
    rows: bool = False


class Result(Framed):
    """A result: tables by name (the first is the main table), notes, facts, plots.

    `result["nDCG@10"]` is a column of the first table and `result["my_run"]` a row; `"my_run" in result`
    tests for a row, and `for row in result` gives all rows. `pandas.DataFrame(result)` and
    `polars.DataFrame(result)` convert the first table. `print(result)` prints the text of a terminal.

    A kind of result is a frozen dataclass with a field `notes` and with

    * `_declare()`: tables by name, the main table first;
    * `_for_people()`: tables to display; the main table by default;
    * `facts`: JSON-ready values beside tables and notes;
    * `plots`: plots of the result;
    * `rejected`: rejected inputs, or graders without results; a command that shows the result then ends with
      status 1.
    """

    notes: tuple[str, ...]
    rejected: tuple[object, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # `@dataclass` adds its own `__repr__` unless the class has one.
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def _declare(self) -> Mapping[str, Table]:
        raise NotImplementedError

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Plots of the result."""
        return ()

    @property
    def facts(self) -> Mapping[str, Any]:
        """JSON-ready values beside tables and notes."""
        return {}

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """Tables by name."""
        return dict(self._declare())

    @property
    def table(self) -> Table:
        """The first table."""
        return next(iter(self.tables.values()))

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the tables to display; `wide` with all rows, for --wide and `to_latex`."""
        return (self.table,)

    def with_notes(self, *notes: str) -> Self:
        """Return the result with more notes before its own."""
        return replace(self, notes=(*notes, *self.notes)) if notes else self  # type: ignore[type-var]

    def columns(self) -> Mapping[str, Any]:
        """Return column name -> array of the first table."""
        return self.table.columns()

    def _json_value(self) -> dict[str, Any]:
        """Return the facts, the notes, and each table as a list of objects, for `to_json`."""
        return {**self.facts, "notes": self.notes, **{name: list(each) for name, each in self.tables.items()}}

    def to_json(self) -> str:
        """Return JSON of facts, notes and all tables; NaN is null."""
        return to_json(self._json_value())

    def to_tsv(self) -> str:
        """Return the first table as TSV with a header line, as the file in out/ has it."""
        return to_tsv(self.table)

    def to_latex(self) -> str:
        """Return the displayed tables in LaTeX, with booktabs; notes are comments."""
        return view.as_latex([each.view() for each in self._for_people(wide=True)], self.notes)

    def __repr__(self) -> str:
        tables = self._for_people()
        first = tables[: view.MOST_TABLES]
        most = view.MOST_ROWS // max(1, len(first))
        return view.as_text([each.view(most) for each in first], self.notes, len(tables) - len(first))

    def _repr_html_(self) -> str:
        tables = self._for_people()
        views = [each.view(html.MOST_ROWS, page=True) for each in tables[: html.MOST_TABLES]]
        return html.as_html(views, self.notes, len(tables) - len(views))

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def __getitem__(self, name: str) -> Any:
        return self.table[name]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)

    def __bool__(self) -> bool:
        # True even for a result without rows.
        return True


@dataclass(frozen=True)
class Tables(Result):
    """A result of given tables by name, all displayed; `about` holds its facts."""

    made: Mapping[str, Table]
    notes: tuple[str, ...] = ()
    plots: tuple[Plot, ...] = field(default=(), repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)
    rejected: tuple[object, ...] = ()

    def _declare(self) -> Mapping[str, Table]:
        return self.made

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.about

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        return tuple(self.made.values())
