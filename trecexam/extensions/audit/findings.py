"""Findings with the texts of findings.toml, and tables."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trecexam.extensions.audit.records import Floats
from trecexam.results.table import Layout, Table
from trecexam.scores.correlation import half_width

#: Findings of a section of the audit, and its tables by name.
Section = tuple[Sequence["Finding"], Mapping[str, Table]]
#: The texts of findings, by kind.
_TEXTS = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))


class Finding(NamedTuple):
    """A finding of the audit.

    Attributes:
        weight: 3: a conclusion may be wrong; 2: a paper must mention it; 1: good to know. 2 and 3 are alarms.
        kind: heading in findings.toml.
        about: the run, team, set of judgments or measure; "" for all.
        sentence: the finding in a sentence, with the number.
        number: size of the effect.
        reason: evidence for the finding.
        action: what to do.
    """

    weight: int
    section: str
    kind: str
    about: str
    sentence: str
    number: float
    reason: str
    action: str


def finding(kind: str, number: float, about: str = "", **values: Any) -> Finding:
    """Return a finding with the texts of findings.toml, filled with these values."""
    text, slots = _TEXTS[kind], {**values, "about": about, "number": number}
    sentence, reason, action = (text[name].format(**slots) for name in ("sentence", "reason", "action"))
    return Finding(text["weight"], text["section"], kind, about, sentence, float(number), reason, action)


def standard_errors(differences: Floats) -> Floats:
    """Return the standard error of each row's mean over queries; NaN with fewer than two queries."""
    n = differences.shape[1]
    return differences.std(axis=1, ddof=1) / math.sqrt(n) if n > 1 else np.full(len(differences), math.nan)


def interval_columns(name: str, means: Floats, differences: Floats) -> dict[str, Floats]:
    """Return columns of the means of differences, shape (rows, queries), and of their 95% intervals."""
    half = half_width(standard_errors(differences), differences.shape[1])
    return {name: means, f"{name}.low": means - half, f"{name}.high": means + half}


def with_interval(value: float, low: float, high: float) -> str:
    """Return a number as text, with its interval if there is one."""
    return f"{value:.2f}" + ("" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def table(caption: str, keys: int, columns: Mapping[str, Any]) -> Table:
    """Return a table of columns (lists or arrays), keys first; p values may be small."""
    values = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    names = tuple(columns)
    small = tuple(name for name in names if name.startswith("p.holm"))
    rows = tuple(zip(*values, strict=True))
    return Table(names, rows, small=small, layout=Layout(names[:keys]), caption=caption)
