"""The answer to a question about a track: tables by name, notes on how to read them, facts, plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from trecexam.results import html, printers
from trecexam.results.frames import Framed
from trecexam.results.table import Table, Value, to_json, to_tsv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """A picture of a result, before it is drawn: `draw` looks at nothing else.

    Attributes:
        name: of its files, and the start of the ids inside its SVG; letters and underscores.
        title: a few words.
        caption: how it is to be read.
        summary: what there is to see, for who cannot see it.
        table: its numbers.
        draw: draws it on an empty figure, of whatever size.
        height: in the report, in inches.
        settings: what else it needs to know.
        rows: the height of its rows of text goes with their letters.
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
    """The answer to a question: tables by name, the first is the main one; notes; facts; plots.

    `result["nDCG@10"]` is a column of the first table and `result["my_run"]` a row; `"my_run" in result` says
    whether there is one, and `for row in result` gives all rows. `pandas.DataFrame(result)` and
    `polars.DataFrame(result)` take it. `print(result)` shows what a terminal shows.

    A kind of result is a frozen dataclass with a field `notes` and with

    * `_declare()`: its tables by name, the first first;
    * `_for_people()`: those that people see; the first where it is not set;
    * `facts`: what JSON has beside tables and notes, ready for JSON;
    * `plots`: pictures of it;
    * `rejected`: which of the inputs were rejected, or which graders cannot be shown; a command that shows
      the result then ends with status 1.
    """

    notes: tuple[str, ...]
    rejected: tuple[object, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # `@dataclass` puts its own in, unless the class has one.
        cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def _declare(self) -> Mapping[str, Table]:
        raise NotImplementedError

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Pictures of it."""
        return ()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Values beside tables and notes, as JSON has them."""
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
        """Return the tables that people are shown; `wide` with all rows, for --wide and `to_latex`."""
        return (self.table,)

    def with_notes(self, *notes: str) -> Self:
        """Return the result with more notes before its own."""
        return replace(self, notes=(*notes, *self.notes)) if notes else self  # type: ignore[type-var]

    def columns(self) -> Mapping[str, Any]:
        """Column name -> array, of the first table."""
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
        """Return the tables that people are shown in LaTeX, with booktabs; notes are comments."""
        return printers.as_latex([each.view() for each in self._for_people(wide=True)], self.notes)

    def __repr__(self) -> str:
        tables = self._for_people()
        first = tables[: printers.MOST_TABLES]
        most = printers.MOST_ROWS // max(1, len(first))
        return printers.as_text([each.view(most) for each in first], self.notes, len(tables) - len(first))

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
        # An answer without rows is an answer, too.
        return True


@dataclass(frozen=True)
class Tables(Result):
    """A result of tables that are made already, by name; people see all of them. `about` are its facts."""

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
