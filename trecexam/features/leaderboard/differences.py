"""Significance tests on a leaderboard: all pairs of runs with groups, or all runs against a baseline."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.board import leaderboard
from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import without_score_note
from trecexam.grades.evaluation import official_values, rubric_values, scored_values, why_no_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.run_grades import runs_without_score
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import LOST, METHOD, Note, shorten_list
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.paired_tests import MOST_RUNS, Correction, PairedT, corrected, paired_t, randomisation_p
from trecexam.scores.values import TIE_DECIMALS

Test = Literal["t", "randomisation"]
#: Level of significance for corrected p values.
ALPHA = 0.05
#: Minimum number of exchanges of a randomisation test, and exchanges per comparison, so that a corrected p
#: value can reach 0.02.
_LEAST_PERMUTATIONS, _PERMUTATIONS = 10_000, 50
#: Columns of a run compared with the baseline; all but the first two as in pt.Experiment.
_OF_BASELINE = ("difference", "effect size", "+", "-", "p-value", "reject", "p-value corrected")
#: Order of these columns by importance on a narrow terminal.
_SHOWN = ("difference", "p-value corrected", "reject", "+", "-", "p-value", "effect size")
#: Letters of groups of runs without significant differences, best group first.
_LETTERS = string.ascii_lowercase + string.ascii_uppercase
_CORRECTIONS: Mapping[Correction, str] = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "fdr_bh": "Benjamini-Hochberg",
    "fdr_by": "Benjamini-Yekutieli",
}


@dataclass(frozen=True, eq=False)
class MeasureDifferences:
    """The compared runs by one measure; arrays have an entry per comparison.

    Attributes:
        measure: as ir_measures prints it.
        runs: best mean over all queries first; ties by name.
        first, second: indices in `runs` of the two compared runs.
        tests: difference, effect size, t, p, and numbers of queries on which the first is better and worse; p
            is that of the chosen test.
        p_corrected: adjusted over all comparisons by this measure.
        reject: True if the difference is significant; False without a test.
        groups: run -> letters, shared by runs without a significant difference; empty in a comparison with a
            baseline.
    """

    measure: str
    runs: tuple[str, ...]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    tests: PairedT
    p_corrected: NDArray[np.float64]
    reject: NDArray[np.bool_]
    groups: Mapping[str, str]

    def of_baseline(self) -> dict[str, dict[str, Any]]:
        """Return run -> columns of pt.Experiment with a baseline, difference and effect size."""
        of, more = self.tests, (self.reject, self.p_corrected)
        columns = (of.difference, of.effect_size, of.better, of.worse, of.p, *more)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        runs = (self.runs[run_index] for run_index in self.first.tolist())
        return {run: dict(zip(_OF_BASELINE, row, strict=True)) for run, row in zip(runs, rows, strict=True)}


@dataclass(frozen=True)
class Differences(Result):
    """Tests of differences between runs.

    The table `leaderboard` has a row per run; `differences` a row per comparison; `groups`, if all pairs are
    compared, the letters of each run. Runs that share a letter do not differ significantly.

    Attributes:
        baseline: the run to compare all runs with; None to compare all pairs.
        test, correction: the test and the correction of p values.
        alpha: level of significance for corrected p values.
        permutations: maximum number of exchanges of the randomisation test; None for the t test.
        measures: one or more; `groups` are by the first.
        board: the leaderboard of the runs; None in out/.
        pairs: True if `differences` is the first table.
        notes: a note on the test, then the leaderboard's notes.
    """

    baseline: str | None
    test: Test
    correction: Correction
    alpha: float
    permutations: int | None
    measures: tuple[MeasureDifferences, ...]
    board: Leaderboard | None = None
    pairs: bool = False
    notes: tuple[str, ...] = ()

    @property
    def groups(self) -> Mapping[str, str]:
        """Run -> its letters, by the first measure."""
        return self.measures[0].groups

    @property
    def words(self) -> str:
        """Describe the test in words."""
        name = "t test"
        if self.test != "t":
            name = f"randomisation test (at most {self.permutations:,} permutations)"
        family = "all pairs of runs" if self.baseline is None else "all comparisons with the baseline"
        tail = (
            f"{_CORRECTIONS[self.correction]} over {family}" if self.correction != "none" else "uncorrected"
        )
        n_runs, n_compared = len(self.measures[0].runs), len(self.groups)
        part = "" if self.baseline or n_compared == n_runs else f"; the best {n_compared} of {n_runs:,} runs"
        return f"two-sided paired {name} over queries, {tail}, at {self.alpha:g}{part}"

    def _declare(self) -> dict[str, Table]:
        """Return the leaderboard with its groups or differences, the comparisons, and the groups."""
        tables = {"differences": self._differences()}
        if self.board is not None:
            board = {"leaderboard": self.joined_to(self.board.table)}
            tables = tables | board if self.pairs else board | tables
        if self.baseline is None:
            rows = [(run, of.measure, group) for of in self.measures for run, group in of.groups.items()]
            tables["groups"] = Table(("run", "measure", "group"), tuple(rows))
        return tables

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the first table; with a baseline a table for each requested measure, the verdict first."""
        table = self.table
        if self.baseline is None or self.pairs:
            return (table,)
        keys = table.header[: table.header.index(self.measures[0].measure)]
        tables = []
        for of in self.measures:
            short = {f"{of.measure} {name}": name for name in _SHOWN}
            block = (*keys, of.measure, f"{of.measure}.stderr", *short)
            header = tuple(name for name in block if name in table.header)
            rows = zip(*(table[name] for name in header), strict=True)
            layout = replace(table.layout, short=short)
            tables.append(replace(table, header=header, rows=tuple(rows), layout=layout))
        return tuple(tables)

    @property
    def facts(self) -> dict[str, Any]:
        """Return how means were computed and differences tested."""
        names = ("baseline", "test", "permutations", "correction", "alpha")
        facts = {name: getattr(self, name) for name in names}
        return facts if self.board is None else {**self.board.facts, **facts}

    def _differences(self) -> Table:
        """Return `run_a run_b measure difference effect_size t p p_corrected reject` per comparison.

        For all pairs, run_a is the better run; with a baseline, run_b is the baseline.
        """
        header = ("run_a", "run_b", "measure", "difference", "effect_size", "t", "p", "p_corrected", "reject")
        rows: list[tuple[Value, ...]] = []
        for of in self.measures:
            numbers = (*of.tests[:4], of.p_corrected, of.reject)
            names = ([of.runs[run_index] for run_index in side.tolist()] for side in (of.first, of.second))
            rows += zip(
                *names, [of.measure] * len(of.first), *(each.tolist() for each in numbers), strict=True
            )
        first = ("difference", "p_corrected", "reject", "p")
        return Table(header, tuple(rows), small=("p", "p_corrected"), layout=Layout(header[:3], first))

    def joined_to(self, board: Table) -> Table:
        """Return the leaderboard's table with facts about each run.

        For all pairs, adds `group` after `run`; with a baseline, adds `MEASURE difference` ... at the end,
        empty for the baseline.
        """
        if self.baseline is None:
            rows = [(row[0], self.groups.get(str(row[0])), *row[1:]) for row in board.rows]
            layout = replace(board.layout, keys=("run", "group", *board.layout.keys[1:]))
            return Table((board.header[0], "group", *board.header[1:]), tuple(rows), layout=layout)
        header, rows = list(board.header), list(board.rows)
        for of in self.measures:
            by_run = of.of_baseline()
            header += (f"{of.measure} {name}" for name in _OF_BASELINE)
            rows = [(*row, *map(by_run.get(str(row[0]), {}).get, _OF_BASELINE)) for row in rows]
        small = tuple(name for name in header if "p-value" in name)
        return Table(tuple(header), tuple(rows), small=small, layout=board.layout)


def has_runs(track: GradedTrack, baseline: str | None) -> bool:
    """Return True if there are runs to compare, and the baseline is among them."""
    return len(track.runs) > 1 and (baseline is None or baseline in track.runs)


def differences(
    track: GradedTrack,
    measures: Measures | None = None,
    *,
    baseline: str | None = None,
    test: Test = "t",
    correction: Correction = "holm",
    alpha: float = ALPHA,
    official: bool = False,
    permutations: int | None = None,
    seed: int = 0,
    pairs: bool = False,
) -> Differences:
    """Test which runs differ significantly, by a paired test over queries."""
    if test not in get_args(Test):
        raise ValueError(f"unknown test '{test}'; there are {', '.join(get_args(Test))}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha {alpha} is not between 0 and 1")
    if permutations is not None and permutations < 1:
        raise ValueError(f"{permutations} permutations; there must be one at least")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed {seed!r}: give a whole number, 0 or more")
    names = names_of(measures)
    if names is None and baseline is None and not pairs:
        names = [(official_values(track) if official else rubric_values(track)).measures[0]]
    values = official_values(track, names) if official else rubric_values(track, names)
    why = why_no_scores(track, official=True) if official else None
    if why is not None:
        raise TrecexamError(why, path=track.folder.root)
    if not official:
        values = scored_values(track, values)
    if baseline in track.runs and baseline not in values.runs:
        raise TrecexamError(without_score_note([str(baseline)]), path=track.folder.root)
    if np.isnan(values.array).any():
        raise TrecexamError("; ".join(values.failure_notes), path=track.folder.root)
    if baseline is not None and baseline not in values.runs:
        run_names = shorten_list(sorted(values.runs), 5) or "none"
        raise TrecexamError(f"no run '{baseline}' to compare with; the runs are {run_names}")
    drawn = None
    if test == "randomisation":
        n_comparisons = math.comb(len(values.runs), 2) if baseline is None else len(values.runs) - 1
        drawn = permutations or max(_LEAST_PERMUTATIONS, _PERMUTATIONS * n_comparisons)
    by_measure = tuple(
        compare(measure, values.runs, values.matrix(measure), baseline, drawn, seed, correction, alpha)
        for measure in values.measures
    )
    board = leaderboard(track, measures, official=official)
    compared = Differences(baseline, test, correction, alpha, drawn, by_measure, board, pairs)
    notes = [Note(compared.words, METHOD), *board.notes]
    if len(values.runs) < 2:
        runs_present = f"{values.runs[0]} is the only one" if values.runs else "there is none"
        drop = f"drop more into {track.folder.runs}"
        notes.insert(0, Note(f"`compare` needs two runs with scores, and {runs_present}: {drop}", LOST))
    return compared.with_notes(*notes)


@memoized
def own_differences(track: GradedTrack) -> Differences:
    """Compare all pairs of the best `MOST_RUNS` runs by the track's first measure."""
    values = rubric_values(track)
    first = values.measures[0]
    # Runs without scores have no differences and no groups.
    unscored = track.runs.keys() if first in values.failures else runs_without_score(track)
    values = values.of_runs([run for run in values.runs if run not in unscored])
    compared = compare(first, values.runs, values.matrix(first), most=MOST_RUNS)
    return Differences(None, "t", "holm", ALPHA, None, (compared,))


def compare(
    measure: str,
    names: Sequence[str],
    matrix: NDArray[np.float64],
    baseline: str | None = None,
    permutations: int | None = None,
    seed: int = 0,
    correction: Correction = "holm",
    alpha: float = ALPHA,
    most: int | None = None,
) -> MeasureDifferences:
    """Compare runs by one measure; `matrix` has the shape (runs, queries).

    Args:
        permutations: number for the randomisation test; None for the t test.
        most: compare only all pairs of this many best runs; p values are still corrected over the pairs of
            all runs, and so never too small.
    """
    means = [math.fsum(row) / max(len(row), 1) for row in matrix.tolist()]
    # Rounded, since the order of sums varies; missing means come last.
    keys = [math.inf if math.isnan(mean) else -round(mean, TIE_DECIMALS) for mean in means]
    order = sorted(range(len(names)), key=lambda run: (keys[run], names[run]))
    runs, values = tuple(names[run] for run in order), matrix[order]
    n_compared = len(runs) if most is None else min(most, len(runs))
    n_comparisons = math.comb(len(runs), 2) if baseline is None else len(runs) - 1
    if baseline is None:
        first, second = np.triu_indices(n_compared, k=1)
    else:
        at = runs.index(baseline)
        first = np.array([run_index for run_index in range(len(runs)) if run_index != at], np.intp)
        second = np.full(len(first), at, np.intp)
    tests = paired_t(values, first, second)
    p = tests.p if permutations is None else randomisation_p(values, first, second, permutations, seed)
    untested = np.full(n_comparisons - len(p), math.nan)
    p_corrected = corrected(np.concatenate([p, untested]), correction)[: len(p)]
    reject = p_corrected < alpha
    groups = {}
    if baseline is None:
        different = np.zeros((n_compared, n_compared), np.bool_)
        different[first, second] = different[second, first] = reject
        groups = dict(zip(runs[:n_compared], group_letters(different), strict=True))
    return MeasureDifferences(measure, runs, first, second, tests._replace(p=p), p_corrected, reject, groups)


def group_letters(different: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return each run's letters: two runs share a letter exactly if they do not differ.

    The groups are cliques that cover all edges of the graph of runs without differences: Piepho, "An
    Algorithm for a Letter-Based Representation of All-Pairwise Comparisons", Journal of Computational and
    Graphical Statistics 13, 2004. The search is greedy, since a minimum cover would take exponential time:
    Gramm et al., "Algorithms for Compact Letter Displays", Computational Statistics & Data Analysis 52, 2007.

    Args:
        different: symmetric, of shape (n_runs, n_runs), False on the diagonal; the best run, with "a", first.

    Returns:
        "a", "ab", "b" ...; after 52 groups a letter has a number: "a1".
    """
    groups = _cliques(~different)
    texts = [""] * len(different)
    for number, members in enumerate(groups):
        cycle, letter_index = divmod(number, len(_LETTERS))
        letter = _LETTERS[letter_index] + (str(cycle) if cycle else "")
        for run in members:
            texts[run] += letter
    return tuple(texts)


def _cliques(alike: NDArray[np.bool_]) -> list[list[int]]:
    """Return maximal cliques that cover all pairs, none redundant, sorted by first members."""
    open_pairs = alike.copy()
    groups = []
    for run in range(len(alike)):
        # Pairs with better runs are covered already.
        while open_pairs[run].any():
            # The worst run first, then runs with most uncovered pairs.
            other = int(np.flatnonzero(open_pairs[run])[-1])
            members = sorted({run, other})
            candidates = alike[run] & alike[other]
            candidates[members] = False
            gain = open_pairs[members].sum(axis=0)
            while candidates.any():
                chosen = int(np.where(candidates, gain, -1).argmax())
                members.append(chosen)
                candidates &= alike[chosen]
                candidates[chosen] = False
                gain += open_pairs[chosen]
            open_pairs[np.ix_(members, members)] = False
            groups.append(sorted(members))
    times = np.zeros(alike.shape, np.int64)
    for members in groups:
        times[np.ix_(members, members)] += 1
    cliques = []
    for members in groups:
        pairs = np.ix_(members, members)
        if (times[pairs] > 1).all():
            times[pairs] -= 1
        else:
            cliques.append(members)
    return sorted(cliques)
