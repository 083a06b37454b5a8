"""Leaderboards: means over queries with their standard errors, best run first."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np

from trecexam.results.frames import texts
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import shorten_list
from trecexam.scores.measures import is_count, is_share, measure
from trecexam.scores.values import TIE_DECIMALS, MeasureValues

#: What `override_summary` gives where nobody rated anything.
NOBODY: Mapping[str, Any] = {"cells": 0, "passages": 0, "who": []}

Average = Literal["all", "answered"]


@dataclass(frozen=True)
class Score:
    """A mean over queries and its standard error, stdev(n-1) / sqrt(n), which is NaN for a single query.

    Of a count the sum stands in place of the mean, without a standard error. Both are NaN where there is
    nothing to average, see `NO_SCORE`.
    """

    mean: float
    stderr: float

    @property
    def exists(self) -> bool:
        """Return True where there is a mean."""
        return not math.isnan(self.mean)


#: The score where a grader has graded nothing, or does not look at the run.
NO_SCORE = Score(math.nan, math.nan)


def only_named(name: str, columns: Iterable[str]) -> str:
    """Return the only column `GRADER:NAME` with this NAME; the name itself if there is none or several."""
    matches = [column for column in columns if column.endswith(f":{name}")]
    return matches[0] if len(matches) == 1 else name


class Scores(tuple[Score, ...]):
    """A run's scores, by index or by measure: `scores[0]`, `scores["nDCG@10"]`."""

    _places: Mapping[str, int]

    def __new__(cls, scores: Iterable[Score], measures: Sequence[str]) -> Self:
        made = super().__new__(cls, scores)
        made._places = {name: index for index, name in enumerate(measures)}
        return made

    def __getnewargs__(self) -> tuple[tuple[Score, ...], tuple[str, ...]]:
        return tuple(self), tuple(self._places)

    def __getitem__(self, at: Any) -> Any:
        """The score at an index or of a measure.

        Raises:
            KeyError: the leaderboard does not have this measure; it names those that it has.
        """
        if not isinstance(at, str):
            return super().__getitem__(at)
        at = only_named(at, self._places)
        if at not in self._places:
            raise KeyError(f"the leaderboard has no {at!r}; it has {shorten_list(self._places, quote='')}")
        return super().__getitem__(self._places[at])


@dataclass(frozen=True)
class Row:
    """A run with its scores.

    Attributes:
        run: its name.
        n_queries: how many queries its means are over.
        n_answered: for how many of the leaderboard's queries it has results.
        scores: in the order of the leaderboard's measures; also by their names, `row.scores["nDCG@10"]`.
        file: where it was read, as people see it.
        graded: (cells with a grade, cells) where a part of its cells has none.
    """

    run: str
    n_queries: int
    n_answered: int
    scores: tuple[Score, ...]
    file: str = ""
    graded: tuple[int, int] | None = None


@dataclass(frozen=True)
class RunColumn:
    """A fact about each run of a leaderboard.

    Attributes:
        name: of the column, and in JSON.
        meaning: for the reference page.
        value: returns a run's value.
        type: of the values.
        in_table: returns True for a leaderboard whose table has the column; None for no table.
        in_json: whether JSON has it, for runs with a value.
    """

    name: str
    meaning: str
    value: Callable[[Row], Value]
    type: type[str | int | float]
    in_table: Callable[[Leaderboard], bool] | None = None
    in_json: bool = True


@dataclass(frozen=True)
class Leaderboard(Result):
    """Runs, best first. As a table it has the columns of `out/leaderboard.tsv`.

    Attributes:
        measures: as ir_measures prints them; the first orders the rows.
        n_queries: how many queries there are.
        average: "all" or "answered", see `leaderboard`.
        rows: by the first measure's mean, best first; ties by the run's name.
        notes: what one must know to read it, one per line.
        human_ratings: how many of the grades people gave, and who; None where it has no part in them.
        _n_shown: how many measures of several graders are drawn and grouped; None for all.
        rejected: the graders that it cannot show.
    """

    measures: tuple[str, ...]
    n_queries: int
    average: Average
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    human_ratings: Mapping[str, Any] | None = None
    _n_shown: int | None = None
    rejected: tuple[str, ...] = ()

    @property
    def best(self) -> Row:
        """The run with the best mean of the first measure.

        Raises:
            LookupError: there are no runs, or none has a mean.
        """
        if not self.has_scores:
            raise LookupError(
                "no run of the leaderboard has a score" if self.rows else "the leaderboard has no runs"
            )
        return self.rows[0]

    @property
    def has_scores(self) -> bool:
        """Return True where a run has a mean."""
        return any(score.exists for row in self.rows for score in row.scores)

    @property
    def ranks(self) -> tuple[int | None, ...]:
        """Each row's rank by the first measure in which runs have a mean, from 1; runs with equal means share
        the better one, and a run without a mean there has none."""
        keys = [best_first(row)[:2] for row in self.rows]
        first, _ = min(keys, default=(0, 0.0))
        ranked = first < max(len(self.measures), 1)
        return tuple(keys.index(key) + 1 if ranked and key[0] == first else None for key in keys)

    @property
    def _has_skipped(self) -> bool:
        """Return True where a run answers fewer than all queries; False where there are no scores."""
        is_all = self.average == "all"
        skipped = (row.n_answered < (row.n_queries if is_all else self.n_queries) for row in self.rows)
        return self.has_scores and any(skipped)

    @property
    def _run_columns(self) -> list[RunColumn]:
        return [column for column in RUN_COLUMNS if column.in_table and column.in_table(self)]

    def _declare(self) -> dict[str, Table]:
        """Declare a row a run: its `RUN_COLUMNS`, then each measure's `SCORE_COLUMNS`."""
        facts = self._run_columns
        names = tuple(column.name for column in facts)
        columns = [f"{name}{end}" for name in self.measures for end in SCORE_COLUMNS]
        rows: Iterable[tuple[Value, ...]] = (
            (
                *(column.value(row) for column in facts),
                *(value for score in row.scores for value in (score.mean, score.stderr)),
            )
            for row in self.rows
        )
        layout = Layout(names, ranks=self.ranks)
        return {"leaderboard": Table((*names, *columns), tuple(rows), layout=layout)}

    def __getitem__(self, name: str) -> Any:
        """A column or a run, see `Table.__getitem__`.

        Raises:
            KeyError: neither; of a measure that is none of the columns it says how to ask for it.
        """
        try:
            return super().__getitem__(only_named(name, self.table.header))
        except KeyError as error:
            with suppress(ValueError):
                measure(str(name).rpartition(":")[2])
                raise KeyError(f"{error.args[0]}; .leaderboard([{name!r}]) computes it") from None
            raise

    def __contains__(self, name: object) -> bool:
        return super().__contains__(only_named(str(name), self.table.header))

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table with the types of their values, also where there are no runs."""
        columns: dict[str, Any] = {}
        for column in self._run_columns:
            values: list[Any] = [column.value(row) for row in self.rows]
            columns[column.name] = texts(values) if column.type is str else np.array(values, column.type)
        for index, name in enumerate(self.measures):
            scores = [row.scores[index] for row in self.rows]
            columns[name] = np.array([score.mean for score in scores], np.float64)
            columns[f"{name}.stderr"] = np.array([score.stderr for score in scores], np.float64)
        return columns

    @property
    def facts(self) -> dict[str, Any]:
        """The kind of means, and the number of people's ratings."""
        human = self.human_ratings or NOBODY
        how = {"measures": list(self.measures), "n_queries": self.n_queries, "average": self.average}
        return how | {"human_ratings": dict(human)}

    def _json_value(self) -> dict[str, Any]:
        """Return facts, notes, and runs with their `RUN_COLUMNS` and scores."""
        return {
            **self.facts,
            "notes": list(self.notes),
            "runs": [
                {
                    **{
                        each.name: value
                        for each in RUN_COLUMNS
                        if each.in_json and (value := each.value(row)) is not None
                    },
                    "scores": {
                        name: {"mean": score.mean, "stderr": score.stderr}
                        for name, score in zip(self.measures, row.scores, strict=True)
                    },
                }
                for row in self.rows
            ],
        }


#: The columns before the measures', in their order; the table of several graders hides all but the first.
RUN_COLUMNS = (
    RunColumn("run", "The run's name.", attrgetter("run"), str, in_table=lambda _: True),
    RunColumn("file", "The run's file.", attrgetter("file"), str),
    RunColumn(
        "queries",
        "How many queries the run has results for, where a run has fewer than all.",
        attrgetter("n_answered"),
        int,
        in_table=attrgetter("_has_skipped"),
        in_json=False,
    ),
    RunColumn("n_answered", "How many queries the run has results for.", attrgetter("n_answered"), int),
    RunColumn(
        "graded",
        "How many of the run's cells have a grade, where some have none.",
        lambda row: row.graded and row.graded[0],
        int,
    ),
    RunColumn(
        "cells",
        "How many cells the run has, where some have no grade.",
        lambda row: row.graded and row.graded[1],
        int,
    ),
)
#: The columns of each measure: what is behind its name -> the meaning.
SCORE_COLUMNS = {
    "": "The measure's mean over queries; of a count the sum.",
    ".stderr": "The mean's standard error over queries.",
}


def leaderboard(
    values: MeasureValues,
    measures: Sequence[str],
    query_ids: Sequence[str],
    answered: Mapping[str, Collection[str]],
    average: Average = "all",
) -> Leaderboard:
    """Return the leaderboard of per-query values; counts such as NumRet are summed, as ir_measures does.

    Args:
        answered: run -> the queries that it has results for.
        average: "all": over all queries, as `trec_eval -c`: a query that a run skips counts 0.
            "answered": over the queries that the run answered, as the published Rubric workbench does;
            a run that answered none has 0. It flatters runs that skip queries, and is here to
            reproduce published numbers.

    Raises:
        ValueError: an unknown way to average.
    """
    if average not in ("all", "answered"):
        raise ValueError(f'unknown average {average!r}; there are "all" and "answered"')
    rows = []
    counts = [*map(is_count, measures)]
    matrices = [values.matrix(name, None, query_ids) for name in measures] if values.runs else []
    for number, run in enumerate(values.runs):
        has = set(answered.get(run, ()))
        columns = [column for column, query_id in enumerate(query_ids) if query_id in has]
        of_run = [matrix[number] if average == "all" else matrix[number, columns] for matrix in matrices]
        n_queries = len(query_ids) if average == "all" else len(columns)
        scores = Scores(
            (
                Score(math.fsum(of_measure.tolist()), math.nan) if of_counts else score(of_measure.tolist())
                for of_measure, of_counts in zip(of_run, counts, strict=True)
            ),
            measures,
        )
        rows.append(Row(run, n_queries, len(columns), scores))
    return Leaderboard(tuple(measures), len(query_ids), average, tuple(sorted(rows, key=best_first)))


def score(values: Sequence[float]) -> Score:
    """Return mean and standard error, both 0 without values; exact sums, so no order matters."""
    n = len(values)
    if n == 0:
        return Score(0.0, 0.0)
    mean = math.fsum(values) / n
    if math.isnan(mean):
        return NO_SCORE
    if n == 1:
        return Score(mean, math.nan)
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return Score(mean, math.sqrt(variance / n))


def interval(score: Score, n: int, measure: str = "") -> tuple[float, float]:
    """Return a mean's 95% confidence interval over n queries, by Student's t with n - 1 degrees of freedom.

    Both ends are NaN for fewer than two queries. The interval of a measure from 0 to 1 ends there.
    """
    from scipy.special import stdtrit

    if n < 2:
        return math.nan, math.nan
    half = float(stdtrit(n - 1, 0.975)) * score.stderr
    low, high = score.mean - half, score.mean + half
    return (max(low, 0.0), min(high, 1.0)) if is_share(measure) else (low, high)


def first_column(row: Row) -> int:
    """The first column in which a run has a mean; the number of columns where it has none."""
    return next((index for index, each in enumerate(row.scores) if each.exists), len(row.scores))


def best_first(row: Row) -> tuple[int, float, str]:
    """A key that puts runs in order by their first mean, and those without one in the first column below."""
    column_index = first_column(row)
    mean = row.scores[column_index].mean if column_index < len(row.scores) else 0.0
    return column_index, -round(mean, TIE_DECIMALS), row.run
