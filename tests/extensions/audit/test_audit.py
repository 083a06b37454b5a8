"""The audit's numbers against scipy and ir_measures, what it finds of what is planted, and its command."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from audit_cases import Case, found, holes, judged, neighbours_of, unpooled
from scipy import stats

from trecexam.cli.main import run
from trecexam.extensions.audit.audit import SECTIONS, audit, audit_files
from trecexam.extensions.audit.choices import choices, labels_of, main_choice, main_values, values
from trecexam.extensions.audit.pool import dealt_p, rank_bounds
from trecexam.extensions.audit.ranking import smallest_difference
from trecexam.extensions.audit.reading import read_inputs
from trecexam.scores.columns import UNJUDGED

Qrels = dict[str, dict[str, int]]


class Desk:
    """Files of eight runs, twelve queries and two sets of judgments with holes, and what is in them."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.folder, self.runs = folder, {f"run{r}": self._run(random) for r in range(8)}
        self.qrels: dict[str, Qrels] = {}
        (folder / "runs").mkdir()
        for name, of_run in self.runs.items():
            lines = (f"{q} Q0 {d} 0 {s} {name}\n" for q, docs in of_run.items() for d, s in docs.items())
            (folder / "runs" / f"{name}.run").write_text("".join(lines))
        for name, top in (("people", 3), ("judge", 2)):
            rows = {
                f"q{q}": {f"d{d}": int(random.integers(-1, top + 1)) for d in range(0, 60, 2)}
                for q in range(12)
            }
            self.qrels[name] = rows
            lines = (f"{q} 0 {d} {label}\n" for q, docs in rows.items() for d, label in docs.items())
            (folder / f"{name}.qrels").write_text("".join(lines))

    @staticmethod
    def _run(random: np.random.Generator) -> dict[str, dict[str, float]]:
        sizes = {f"q{q}": int(random.integers(3, 50)) for q in range(12)}
        return {
            q: {f"d{d}": float(n - i) for i, d in enumerate(random.permutation(60)[:n])}
            for q, n in sizes.items()
        }

    def words(self, *more: str) -> list[str]:
        return [*("audit", "--qrels", f"{self.folder}/people.qrels", "--runs", f"{self.folder}/runs"), *more]

    def both(self) -> list[str]:
        return self.words("--qrels", f"{self.folder}/judge.qrels")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def evaluated(
    measure: ir_measures.Measure, qrels: Qrels, ranking: dict[str, dict[str, float]]
) -> list[float]:
    """What ir_measures gives, 0 for queries that it leaves out."""
    by_query = {each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels, ranking)}
    return [by_query.get(query, 0.0) for query in sorted(qrels)]


def test_values_of_all_choices_are_those_of_ir_measures(desk: Desk) -> None:
    inputs = read_inputs([desk.folder / f"{side}.qrels" for side in desk.qrels], [desk.folder / "runs"])
    for side in inputs.sides:
        qrels = desk.qrels[side.name]
        for choice in choices(side, 7):
            gains = (
                {}
                if choice.rel is None
                else {"gains": {label: int(label >= choice.rel) for label in range(4)}}
            )
            parameters = gains if choice.kind == "nDCG" else {"rel": choice.rel}
            measure = getattr(ir_measures, choice.kind)(**parameters, judged_only=choice.condensed) @ choice.k
            ours = values(side, labels_of(inputs, side, condensed=choice.condensed), choice)
            for name, of_run in zip(inputs.runs, ours, strict=True):
                assert of_run == pytest.approx(evaluated(measure, qrels, desk.runs[name]), abs=1e-12), (
                    choice.name
                )


def test_at_best_a_run_has_what_it_would_have_with_its_own_unjudged_passages_judged_best(desk: Desk) -> None:
    inputs = read_inputs([desk.folder / "people.qrels"], [desk.folder / "runs"])
    (side,), choice = inputs.sides, main_choice(inputs)
    labels = labels_of(inputs, side)
    best = values(side, labels, choice, (inputs.rows >= 0) & (labels == UNJUDGED))
    for name, of_run in zip(inputs.runs, best, strict=True):
        first = {q: sorted(docs, key=docs.__getitem__)[::-1][:10] for q, docs in desk.runs[name].items()}
        more = {q: dict.fromkeys(first[q], 3) | docs for q, docs in desk.qrels["people"].items()}
        assert of_run == pytest.approx(evaluated(ir_measures.nDCG @ 10, more, desk.runs[name]), abs=1e-12)
    top, bottom = rank_bounds(np.array([0.5, 0.4, 0.1]), np.array([0.5, 0.6, 0.45]))
    assert (top.tolist(), bottom.tolist()) == ([1, 1, 2], [2, 3, 3])


def test_tests_tau_and_power_are_those_of_scipy(desk: Desk) -> None:
    inputs = read_inputs([desk.folder / f"{side}.qrels" for side in desk.qrels], [desk.folder / "runs"])
    people, judge = (main_values(inputs, side) for side in inputs.sides)
    tables = audit(inputs).tables
    tau = stats.kendalltau(people.mean(axis=1), judge.mean(axis=1)).statistic
    assert tables["correlation"]["tau"]["value"] == pytest.approx(tau)
    rows = [
        inputs.runs.index(name)
        for name in (*tables["neighbours"]["better"], tables["neighbours"]["worse"][-1])
    ]
    p = [stats.ttest_rel(people[a], people[b]) for a, b in itertools.pairwise(rows)]
    smallest = min(range(7), key=lambda i: p[i].pvalue)
    assert tables["neighbours"]["p.holm"][smallest] == pytest.approx(min(1, 7 * p[smallest].pvalue))
    low, high = (tables["neighbours"][f"difference.{end}"][0] for end in ("low", "high"))
    assert (low, high) == pytest.approx(tuple(p[0].confidence_interval()))
    random = np.random.default_rng(3)
    least = smallest_difference(random.normal(size=(2001, 25)))
    told = stats.ttest_1samp(random.normal(least, 1, (4000, 25)), 0, axis=1).pvalue < 0.05
    assert told.mean() == pytest.approx(0.8, abs=0.03)


def test_unjudged_passages_are_dealt_from_the_run_s_and_other_teams_passages() -> None:
    rows = np.array([[[1, 2], [11, 12]], [[3, 4], [11, 13]], [[5, 1], [14, 12]]], np.int32)
    unjudged = np.isin(rows, (2, 12))
    # Of the first run: 1 of 1, 2, 5 or 3, 4 is unjudged, whose team mate is the second.
    p = [stats.hypergeom.pmf(range(3), size, holes, 2) for size, holes in ((3, 1), (4 - 1, 1))]
    assert dealt_p(rows, unjudged, np.array([0, 0, 1]))[0] == pytest.approx(np.convolve(*p)[2:].sum())
    p = [stats.hypergeom.pmf(range(3), size, 1, 2) for size in (5, 4)]
    assert dealt_p(rows, unjudged, np.array([0, 1, 2]))[0] == pytest.approx(np.convolve(*p)[2:].sum())
    assert dealt_p(rows, unjudged, np.array([0, 1, 2]))[1] == 1


@pytest.mark.parametrize("what", ["threshold", "drift", "unused label", "raised", "raised team", "likeness"])
def test_what_is_planted_in_a_judge_is_found(what: str) -> None:
    section = "scales" if what in ("threshold", "drift", "unused label") else "judge"
    cases = [judged("cranfield", what, np.random.default_rng([1, seed])) for seed in range(4)]
    assert [found(case, SECTIONS[section][-1](case.inputs).findings) for case in cases] == [(1, 1)] * 4


def test_holes_and_runs_that_were_not_pooled_are_found(tmp_path: Path) -> None:
    for make, seed in ((unpooled, 1), (unpooled, 2), (holes, 3)):
        case: Case = make(np.random.default_rng(seed), tmp_path)
        hit, planted = found(case, SECTIONS["pool"][-1](case.inputs).findings)
        assert hit == planted > 0


def test_a_fair_judge_raises_no_alarm_and_equal_runs_are_not_told_apart() -> None:
    clean = [
        judged(name, "clean", np.random.default_rng([2, seed]))
        for name in ("dl19", "cisi")
        for seed in range(2)
    ]
    assert [audit(case.inputs).alarms for case in clean] == [()] * 4
    for what, least, most in (("equal", 0, 3), ("certain", 18, 20)):
        made = (
            SECTIONS["ranking"][-1](neighbours_of(what, np.random.default_rng(seed)).inputs)
            for seed in range(20)
        )
        assert least <= sum(part.tables["neighbours"]["verdict"] == ["certain"] for part in made) <= most
    reversed_pair = audit(neighbours_of("reversed", np.random.default_rng(5)).inputs)
    assert "reversed" in {each.kind for each in reversed_pair.alarms}


def test_the_command_shows_findings_and_writes_the_page(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk.folder / "runs" / "evil.run").write_text("q1 Q0 d1 1 1 <script>\n")
    (desk.folder / "teams.tsv").write_text("".join(f"run{r}\tteam{r // 3}\n" for r in range(8)))
    more = ("--teams", f"{desk.folder}/teams.tsv", "--judge-run", f"{desk.folder}/runs/run0.run")
    assert run([*desk.both(), *more, "-o", f"{desk.folder}/audit.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    weights = [each["weight"] for each in told["findings"]]
    assert weights == sorted(weights, reverse=True)
    assert {each["section"] for each in told["findings"]} >= {"scales", "pool", "ranking", "sensitivity"}
    assert all(told[name] for name in ("thresholds", "drift", "teams", "bias", "neighbours", "leaderboards"))
    page = (desk.folder / "audit.html").read_text()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert all(f'id="{name}-section"' in page for name in ("findings", *SECTIONS))


def test_one_set_of_judgments_is_audited_and_what_needs_two_is_named(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*desk.words(), "--table"]) == 0
    out, err = capsys.readouterr()
    assert "one set of judgments" in err
    assert "tell neighbours apart" in out.replace("\n        ", " ")


def test_runs_and_queries_that_differ_are_intersected_and_said(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    people, judge = desk.folder / "people.qrels", desk.folder / "judge.qrels"
    people.write_text(people.read_text() + "only 0 d1 1\nboth 0 d1 1\n")
    judge.write_text(judge.read_text() + "both 0 d1 1\n")
    (desk.folder / "runs" / "other.run").write_text("elsewhere Q0 d1 1 1 other\n")
    (desk.folder / "runs" / "bad.run").write_text("q1 Q0 d1 1 high bad\n")
    assert run([*desk.both(), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["n_runs"], told["n_queries"]) == (8, 12)
    said = "\n".join(told["notes"])
    for part in (
        "1 query that the other set does not judge",
        "1 judged query that no run has",
        "other.run",
        "bad.run:1",
    ):
        assert part in said
    whole = audit_files([people, judge], [desk.folder / "runs" / f"run{r}.run" for r in range(8)])
    assert whole.tables["pool (judge)"]["rank"] == [row["rank"] for row in told["pool (judge)"]]


@pytest.mark.parametrize(("n_runs", "n_queries"), [(1, 1), (2, 1), (3, 2), (8, 4)])
def test_few_runs_and_few_queries_are_audited_too(tmp_path: Path, n_runs: int, n_queries: int) -> None:
    desk = Desk(tmp_path)
    for name, qrels in desk.qrels.items():
        rows = (f"q{q} 0 {d} {label}\n" for q in range(n_queries) for d, label in qrels[f"q{q}"].items())
        (tmp_path / f"{name}.qrels").write_text("".join(rows))
    runs = [tmp_path / "runs" / f"run{r}.run" for r in range(n_runs)]
    for sides in (["people.qrels"], ["people.qrels", "judge.qrels"]):
        made = audit_files(
            [tmp_path / side for side in sides], runs, judge_run=runs[0], page=tmp_path / "a.html"
        )
        assert (made.n_runs, made.n_queries) == (n_runs, n_queries)
        assert len(made.tables["pool" if len(sides) == 1 else "pool (judge)"]) == n_runs


def test_what_cannot_be_audited_is_refused_with_the_reason(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(desk.words("--qrels", f"{desk.folder}/judge.qrels", "--qrels", f"{desk.folder}/judge.qrels")) == 2
    )
    assert "3 sets of judgments" in capsys.readouterr().err
    (desk.folder / "other.qrels").write_text("x 0 d1 1\n")
    assert run(desk.words("--qrels", f"{desk.folder}/other.qrels")) == 2
    assert "no query is judged by both" in capsys.readouterr().err
