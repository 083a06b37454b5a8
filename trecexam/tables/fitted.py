"""Tables that keep to the width of a terminal: headings break over lines, names are cut, columns left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from trecexam.tables.table import NO_VALUE, Layout, Table, Value, by_column, texts_for_people
from trecexam.tables.terminal import columns, cut_apart, padded, printable
from trecexam.tables.text import heading_parts, number

#: Blanks between columns.
_GAP = 2
#: A text column is cut to this share of the width before a column of numbers is left out.
_TEXT = 0.3
#: Less than this no text is cut to, whatever else has room.
_LEAST = 4
#: Columns `NAME.stderr`, `NAME.low` and `NAME.high` stand behind the value of the column NAME.
_SPREAD = ("stderr", "low", "high")


@dataclass(frozen=True)
class Fitted:
    """A table for people.

    Attributes:
        tables: of each table the lines of its heading, and those of its rows.
        left_out: columns that had no room.
        cut: whether names were cut.
        legend: what stands behind values.
    """

    tables: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    left_out: tuple[str, ...]
    cut: bool
    legend: tuple[str, ...]


@dataclass(frozen=True)
class _Field:
    """A column as texts.

    Attributes:
        of: the column that it belongs to, or itself.
        texts: values, and what stands behind them.
        numeric: whether they are to the right.
        bare: the values alone.
        legend: what stands behind them; "" where nothing does.
    """

    name: str
    of: str
    heading: str
    texts: tuple[str, ...]
    numeric: bool
    bare: tuple[str, ...] = ()
    legend: str = ""

    @cached_property
    def widest(self) -> int:
        """The columns that its longest text takes."""
        return max(map(columns, self.texts), default=0)

    @property
    def natural(self) -> int:
        """The width at which nothing is cut."""
        return max(self.widest, columns(self.heading))

    def floor(self, width: int) -> int:
        """The width below which other columns are left out first, of a table of this width."""
        return self._at_least(self.widest if self.numeric else min(self.widest, int(_TEXT * width)))

    @property
    def least(self) -> int:
        """The width below which it is never cut."""
        return self._at_least(self.widest if self.numeric else min(self.widest, _LEAST))

    def _at_least(self, width: int) -> int:
        """The width, or that of the heading's longest part, as a heading is broken and never cut."""
        return max(width, *map(columns, heading_parts(self.heading)))


def fitted(table: Table, width: int | None, layout: Layout | None = None) -> Fitted:
    """The table in lines of at most so many columns.

    The keys and the first other column are always there; then come those that there is room for. Numbers are
    to the right, with three digits; standard errors and intervals stand behind their values.

    Args:
        width: at least 40; None to leave nothing out and cut nothing.
        layout: in place of the table's own.
    """
    layout = table.layout if layout is None else layout
    without = layout.without if width is not None else ()
    if width is not None:
        for name, short in layout.short.items():
            header = (
                f"{short}{each[len(name) :]}" if _belongs(each, name) else each for each in table.header
            )
            table = replace(table, header=tuple(header))
        layout = replace(layout, keys=tuple(layout.short.get(name, name) for name in layout.keys))
    fields = {each.name: each for each in _fields(table) if each.name not in without}
    keys = [fields[name] for name in layout.keys or _leading_texts(table) if name in fields]
    if layout.ranks:
        ranks = tuple(NO_VALUE if rank is None else str(rank) for rank in layout.ranks)
        keys.insert(0, _Field("rank", "rank", "rank", ranks, True))
    rest = _ordered([each for each in fields.values() if each not in keys], layout.first)
    allowed = list(dict.fromkeys(each.of for each in rest))[: None if width is None else layout.most]
    left_out = [each for each in rest if each.of not in allowed]
    rest = [each for each in rest if each.of in allowed]
    if (
        width is not None
        and not layout.split
        and sum(each.natural + _GAP for each in (*keys, *rest)) > width + _GAP
    ):
        empty = [each for each in (*keys[1:], *rest) if not any(each.texts)]
        if any(each not in empty for each in rest):
            left_out += empty
            keys, rest = ([each for each in part if each not in empty] for part in (keys, rest))
    tables: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    shown_fields: list[_Field] = []
    was_cut = False
    while rest or not tables:
        rest = list(_under_headings(rest))
        chosen = rest if width is None else _with_room(keys, rest, width, bare=not layout.split)
        if width is not None and layout.most is not None and len(chosen) < len(rest):
            # Rather all columns that are meant than some of them with what stands behind their values; where
            # that is not enough room, the first ones as they are.
            plain = [replace(each, texts=each.bare, legend="") if each.bare else each for each in rest]
            with_room = _with_room(keys, plain, width, bare=False)
            chosen = with_room if len(with_room) == len(rest) else chosen
        names = {each.name for each in chosen}
        rest = [each for each in rest if each.name not in names]
        in_line = [*keys, *chosen]
        widths = [each.natural for each in in_line] if width is None else _narrowed(in_line, width)
        was_cut = was_cut or any(each.widest > to for each, to in zip(in_line, widths, strict=True))
        tables.append(_lines(in_line, widths, len(table.rows)))
        shown_fields += chosen
        if not layout.split:
            break
    legend = dict.fromkeys(each.legend for each in shown_fields if each.legend)
    return Fitted(
        tuple(tables),
        tuple(_unseen(table, fields.values(), (*left_out, *rest), shown_fields)),
        was_cut,
        tuple(legend),
    )


class Cells(NamedTuple):
    """A whole table as texts, with standard errors and intervals behind their values.

    Attributes:
        header: the columns' names; `rank` first where rows have ranks.
        numeric: of each column whether it holds numbers.
        rows: the texts of each row.
        legend: what stands behind values.
    """

    header: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...]


def cells_of(table: Table) -> Cells:
    """All columns of a table but those that say nothing to people, in the order in which people see them."""
    fields = {each.name: each for each in _fields(table) if each.name not in table.layout.without}
    keys = [fields[name] for name in table.layout.keys if name in fields]
    ranks = tuple(NO_VALUE if rank is None else str(rank) for rank in table.layout.ranks)
    shown_fields = [_Field("rank", "rank", "rank", ranks, True)] if ranks else []
    shown_fields += [
        *keys,
        *_ordered([each for each in fields.values() if each not in keys], table.layout.first),
    ]
    texts = ([" ".join(text.split()) for text in each.texts] for each in shown_fields)
    return Cells(
        tuple(each.heading for each in shown_fields),
        tuple(each.numeric for each in shown_fields),
        tuple(zip(*texts, strict=True)),
        tuple(dict.fromkeys(each.legend for each in shown_fields if each.legend)),
    )


def _belongs(column: str, name: str) -> bool:
    """Whether it is this column, or stands behind its values or after it."""
    return column == name or column.startswith((f"{name}.", f"{name} "))


def _unseen(
    table: Table, fields: Iterable[_Field], left_out: Sequence[_Field], shown_fields: Sequence[_Field]
) -> Iterator[str]:
    """The columns that are not shown; of what belongs to one of them nothing need be said."""
    names = {each.name for each in left_out}
    for each in fields:
        if each.name in names and (each.of == each.name or each.of not in names):
            yield each.heading
    bare = [each.name for each in shown_fields if each.bare and not each.legend]
    yield from dict.fromkeys(
        "standard errors" if f"{name}.stderr" in table.header else "intervals" for name in bare
    )


def _fields(table: Table) -> Iterator[_Field]:
    values = dict(by_column(table))
    for name, of_column in values.items():
        of = next((other for other in values if other != name and _belongs(name, other)), name)
        if name in {f"{of}.{what}" for what in _SPREAD}:
            continue
        bare = tuple(texts_for_people(of_column, table, name))
        numeric = any(isinstance(value, int | float) for value in of_column)
        numeric &= not any(isinstance(value, str) and value for value in of_column)
        spreads, legend = _spreads(name, values, table.layout.interval)
        if any(spreads):
            yield _Field(name, of, printable(name), _behind(bare, spreads), numeric, bare, legend)
        else:
            yield _Field(name, of, printable(name), bare, numeric)


def _spreads(name: str, values: Mapping[str, Sequence[Value]], interval: str) -> tuple[list[str], str]:
    """What stands behind each value of a column, and what it is."""
    if f"{name}.stderr" in values:
        errors = values[f"{name}.stderr"]
        return [_text("±{}", (each,)) for each in errors], "± standard error"
    if f"{name}.low" in values and f"{name}.high" in values:
        ends = zip(values[f"{name}.low"], values[f"{name}.high"], strict=True)
        return [_text("[{}, {}]", each) for each in ends], f"[{interval}]"
    return [], ""


def _text(form: str, values: Sequence[Value]) -> str:
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    return form.format(*map(number, numbers)) if len(numbers) == len(values) else ""


def _behind(texts: Sequence[str], spreads: Sequence[str]) -> tuple[str, ...]:
    """Values and what stands behind them, so that both are in line."""
    value, spread = max(map(len, texts)), max(map(len, spreads))
    pairs = zip(texts, spreads, strict=True)
    return tuple(f"{text:>{value}} {behind:>{spread}}" for text, behind in pairs)


def _leading_texts(table: Table) -> Iterator[str]:
    for name, values in by_column(table):
        if any(isinstance(value, int | float) for value in values):
            return
        yield name


def _ordered(fields: Sequence[_Field], first: Sequence[str]) -> list[_Field]:
    """The fields in this order, each followed by what belongs to it."""
    names = [each.name for each in fields]
    order = list(dict.fromkeys([*(name for name in first if name in names), *names]))
    return sorted(fields, key=lambda each: order.index(each.of if each.of in order else each.name))


def _under_headings(fields: Sequence[_Field]) -> Iterator[_Field]:
    """The fields, with short headings for those that come after what they belong to."""
    names = {each.name for each in fields}
    for each in fields:
        what = each.name[len(each.of) + 1 :]
        yield replace(each, heading=printable(what if what and each.of in names else each.name))


def _with_room(keys: Sequence[_Field], fields: Sequence[_Field], width: int, *, bare: bool) -> list[_Field]:
    """The first field (`bare`: if need be without its spread), and the others that there is room for."""
    left = width - sum(each.floor(width) + _GAP for each in keys)
    chosen = list(fields[:1])
    if bare and chosen and chosen[0].bare and chosen[0].least > left:
        chosen[0] = replace(chosen[0], texts=chosen[0].bare, legend="")
    left -= sum(each.floor(width) for each in chosen)
    out: set[str] = set()
    for each in fields[1:]:
        if each.of not in out and _GAP + each.floor(width) <= left:
            chosen.append(each)
            left -= _GAP + each.floor(width)
        else:
            out.add(each.name)
    return chosen


def _narrowed(fields: Sequence[_Field], width: int) -> list[int]:
    """Widths that together fit: headings are broken, and texts are cut to one width."""
    room = width - _GAP * (len(fields) - 1)
    widths = [each.least for each in fields]
    # What is in the rows has room before headings have.
    for goal in ([max(each.widest, each.least) for each in fields], [each.natural for each in fields]):
        for level in range(1, room + 1):
            wider = [max(to, min(most, level)) for to, most in zip(widths, goal, strict=True)]
            if sum(wider) > room:
                break
            widths = wider
    return widths


def _lines(
    fields: Sequence[_Field], widths: Sequence[int], n_rows: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of the heading, and those of the rows."""
    headings = [_broken(each.heading, width) for each, width in zip(fields, widths, strict=True)]
    n_lines = max(map(len, headings))
    lines: list[list[str]] = [[] for _ in range(n_lines + n_rows)]
    for each, width, heading in zip(fields, widths, headings, strict=True):
        texts = each.texts if each.widest <= width else cut_apart(each.texts, width)
        for line, text in zip(lines, (*[""] * (n_lines - len(heading)), *heading, *texts), strict=True):
            line.append(padded(text, width, right=each.numeric))
    joined = tuple((" " * _GAP).join(line).rstrip() for line in lines)
    return joined[:n_lines], joined[n_lines:]


def _broken(heading: str, width: int) -> list[str]:
    """The heading in lines of at most so many columns."""
    lines = [""]
    for part in heading_parts(heading):
        if lines[-1] and columns(lines[-1] + part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [line.rstrip() for line in lines]
