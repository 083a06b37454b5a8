"""The audit: its numbers against scipy and ir_measures, planted problems that it finds, and its command."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from audit_cases import Case, found, holes, judged, neighbours_of, unpooled, whole, without
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from support import Terminal, err, out, printed

from trecexam.cli.main import run
from trecexam.extensions.audit.audit import SECTIONS, audit
from trecexam.extensions.audit.choices import choices, main_values, values
from trecexam.extensions.audit.pool import dealt_p, open_ranks
from trecexam.extensions.audit.ranking import ranking, smallest_difference
from trecexam.extensions.audit.reading import read_inputs
from trecexam.extensions.audit.records import AuditInputs

Qrels = Mapping[str, Mapping[str, int]]
Capture = pytest.CaptureFixture[str]


class Desk:
    """Files of eight runs, twelve queries and two sets of judgments with holes, and their content."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(0)
        queries = [f"q{q}" for q in range(12)]
        docs = [f"d{d}" for d in range(60)]
        self.folder = folder
        self.runs = {f"run{r}": {q: ranked(random, docs) for q in queries} for r in range(8)}
        self.qrels = {
            name: {q: {d: int(random.integers(-1, top + 1)) for d in docs[::2]} for q in queries}
            for name, top in (("people", 3), ("judge", 2))
        }
        (folder / "runs").mkdir()
        for name, rows in self.runs.items():
            write(folder / "runs" / f"{name}.run", rows, "{} Q0 {} 0 {} " + name)
        for name, rows in self.qrels.items():
            write(folder / f"{name}.qrels", rows, "{} 0 {} {}")

    @property
    def both(self) -> list[Path]:
        return [self.folder / "people.qrels", self.folder / "judge.qrels"]

    def words(self, *sides: str) -> list[str]:
        """The command line for these sets of judgments."""
        options = [word for side in sides for word in ("--qrels", f"{self.folder}/{side}.qrels")]
        return ["audit", *options, "--runs", f"{self.folder}/runs"]


def ranked(random: np.random.Generator, docs: list[str]) -> dict[str, float]:
    n = int(random.integers(3, 50))
    return {doc: float(n - rank) for rank, doc in enumerate(random.permutation(docs)[:n].tolist())}


def write(path: Path, rows: Mapping[str, Mapping[str, float]], line: str) -> None:
    every = (line.format(query, doc, value) for query, of in rows.items() for doc, value in of.items())
    path.write_text("\n".join(every) + "\n")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def evaluated(measure: Any, qrels: Qrels, ranking: Mapping[str, Mapping[str, float]]) -> list[float]:
    """The values of ir_measures, 0 for queries that it omits."""
    by_query = {each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels, ranking)}
    return [by_query.get(query, 0.0) for query in sorted(qrels)]


def test_values_of_all_choices_equal_ir_measures(desk: Desk) -> None:
    inputs = read_inputs(desk.both, [desk.folder / "runs"])
    for side in inputs.sides:
        for choice in choices(side, 7):
            parameters: dict[str, Any] = {}
            if choice.rel is not None:
                gains = {label: int(label >= choice.rel) for label in range(4)}
                parameters |= {"gains": gains} if choice.kind == "nDCG" else {"rel": choice.rel}
            measure = getattr(ir_measures, choice.kind)(**parameters) @ choice.k
            ours = values(inputs, side, choice)
            for name, of_run in zip(inputs.runs, ours, strict=True):
                theirs = evaluated(measure, desk.qrels[side.name], desk.runs[name])
                assert of_run == pytest.approx(theirs, abs=1e-12), choice.name


#: query_id -> the order of a run, and query_id -> doc_id -> label, of small cases.
Small = tuple[tuple[dict[str, list[str]], ...], dict[str, dict[str, int]]]


@st.composite
def small_cases(draw: st.DrawFn) -> Small:
    """Up to three runs of up to five passages of up to two queries, of which some have no label."""
    queries = ["q1", "q2"][: draw(st.integers(1, 2))]
    docs = [f"d{n}" for n in range(5)]
    order = st.permutations(docs).flatmap(lambda of: st.integers(1, 5).map(lambda n: of[:n]))
    runs = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(queries, order)), min_size=2, max_size=3))
    label = st.sampled_from([None, 0, 1, 3])
    given = st.fixed_dictionaries({query: st.lists(label, min_size=6, max_size=6) for query in queries})
    qrels = {
        query: {doc: n for doc, n in zip([*docs, "elsewhere"], of, strict=True) if n is not None}
        for query, of in draw(given).items()
    }
    assume(all(qrels.values()))
    return tuple(runs), qrels


def naive_ndcg(k: int, ranking: list[str], labels: Mapping[str, int]) -> float:
    def of(gains: list[int]) -> float:
        return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains[:k]))

    ideal = of(sorted(labels.values(), reverse=True))
    return of([labels.get(doc, 0) for doc in ranking]) / ideal if ideal else 0.0


def naive_ranks(k: int, runs: Iterable[dict[str, list[str]]], qrels: Qrels) -> list[int]:
    means = [round(sum(naive_ndcg(k, run[q], qrels[q]) for q in qrels) / len(qrels), 12) for run in runs]
    return [1 + sum(other > mean for other in means) for mean in means]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(small_cases(), st.integers(1, 3))
def test_the_rank_is_within_the_bounds_for_all_labels_of_unjudged_passages(case: Small, k: int) -> None:
    runs, qrels = case
    labels = range(max(1, *itertools.chain.from_iterable(of.values() for of in qrels.values())) + 1)
    free = sorted({(q, d) for run in runs for q in qrels for d in run[q] if d not in qrels[q]})
    # Four would be 256 labellings.
    assume(len(free) <= 3)
    # Deeper passages stay without a label.
    free = [(q, d) for q, d in free if any(d in run[q][:k] for run in runs)]
    inputs = replace(read(runs, qrels), cutoff=k)
    found_open = open_ranks(inputs, inputs.sides[0])
    for given_labels in itertools.product(labels, repeat=len(free)):
        full = {query: dict(of) for query, of in qrels.items()}
        for (query, doc), label in zip(free, given_labels, strict=True):
            full[query][doc] = label
        ranks = naive_ranks(k, runs, full)
        bounds = list(zip(found_open.best.tolist(), ranks, found_open.worst.tolist(), strict=True))
        assert all(best <= rank <= worst for best, rank, worst in bounds), (full, bounds)
        if not any(given_labels):
            assert found_open.rank.tolist() == ranks
        if not free:
            assert all(best == worst for best, _, worst in bounds)


def read(runs: Iterable[dict[str, list[str]]], qrels: Qrels) -> AuditInputs:
    """The inputs of small cases, from files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "runs").mkdir()
        for number, run in enumerate(runs):
            rows = {q: {d: 9 - r for r, d in enumerate(of)} for q, of in run.items()}
            write(folder / "runs" / f"{number}.run", rows, "{} Q0 {} 0 {} r")
        write(folder / "a.qrels", qrels, "{} 0 {} {}")
        return read_inputs([folder / "a.qrels"], [folder / "runs"])


def test_a_deep_unjudged_passage_cannot_lower_the_best_rank() -> None:
    # With the highest label at rank ten the ideal rises more than the run does.
    nones = [f"n{n}" for n in range(9)]
    runs = ({"q": ["rel", *nones[:8], "u"]}, {"q": [nones[0], "rel", *nones[1:]]})
    pool = audit(read(runs, {"q": {"rel": 3, **dict.fromkeys(nones, 0)}})).tables["pool"]
    assert [pool[name] for name in ("rank", "best rank", "worst rank")] == [[1, 2]] * 3
    # At rank one both are right: the run is first, or second.
    runs = ({"q": ["u", *nones]}, {"q": [nones[0], "rel", *nones[1:]]})
    pool = audit(read(runs, {"q": {"rel": 3, **dict.fromkeys(nones, 0)}})).tables["pool"]
    assert [pool[name] for name in ("rank", "best rank", "worst rank")] == [[2, 1], [1, 1], [2, 2]]


def test_on_dl19_ranks_by_all_judgments_are_within_bounds_and_pooled_runs_move_little(tmp_path: Path) -> None:
    base = whole("dl19")
    for team, k in itertools.product(("idst", "bm25", "TUW19"), (5, 10)):
        first, ours = base.rows[:, :, :k], np.array(base.teams) == team
        inputs = replace(without(base, np.setdiff1d(first[ours], first[~ours]), tmp_path), cutoff=k)
        whole_ranks = open_ranks(replace(base, cutoff=k), base.sides[0]).rank
        of = open_ranks(inputs, inputs.sides[0])
        assert ((of.best <= whole_ranks) & (whole_ranks <= of.worst)).all()
        assert (of.worst - of.best)[~ours].mean() < 8


def test_tests_tau_and_power_equal_scipy(desk: Desk) -> None:
    inputs = read_inputs(desk.both, [desk.folder / "runs"])
    people, judge = (main_values(inputs, side) for side in inputs.sides)
    tables = audit(inputs).tables
    tau = stats.kendalltau(people.mean(axis=1), judge.mean(axis=1)).statistic
    assert tables["correlation"]["tau"]["value"] == pytest.approx(tau)
    near = tables["neighbours"]
    rows = [inputs.runs.index(name) for name in (*near["better"], near["worse"][-1])]
    tests = [stats.ttest_rel(people[a], people[b]) for a, b in itertools.pairwise(rows)]
    assert min(near["p.holm"]) == pytest.approx(min(1, 7 * min(each.pvalue for each in tests)))
    ends = near["difference.low"][0], near["difference.high"][0]
    assert ends == pytest.approx(tuple(tests[0].confidence_interval()))
    random = np.random.default_rng(3)
    least = smallest_difference(random.normal(size=(2001, 25)))
    found_in = stats.ttest_1samp(random.normal(least, 1, (4000, 25)), 0, axis=1).pvalue < 0.05
    assert found_in.mean() == pytest.approx(0.8, abs=0.03)


def test_unjudged_passages_are_attributed_to_the_run_and_to_other_teams() -> None:
    rows = np.array([[[1, 2], [11, 12]], [[3, 4], [11, 13]], [[5, 1], [14, 12]]], np.int32)
    unjudged = np.isin(rows, (2, 12))
    # Without the second run, which belongs to the first one's team: 1, 2, 5 and 11, 12, 14.
    p = [stats.hypergeom.pmf(range(3), 3, 1, 2)] * 2
    assert dealt_p(rows, unjudged, np.array([0, 0, 1]))[0] == pytest.approx(np.convolve(*p)[2:].sum())
    p = [stats.hypergeom.pmf(range(3), size, 1, 2) for size in (5, 4)]
    alone = dealt_p(rows, unjudged, np.array([0, 1, 2]))
    assert (alone[0], alone[1]) == pytest.approx((np.convolve(*p)[2:].sum(), 1))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["threshold", "unused label", "raised", "raised team", "likeness"])
def test_a_planted_judge_bias_is_found(what: str) -> None:
    section = "scales" if what in ("threshold", "unused label") else "judge"
    cases = [judged("cranfield", what, np.random.default_rng([1, seed])) for seed in range(4)]
    assert [found(case, SECTIONS[section][-1](case.inputs)[0]) for case in cases] == [(1, 1)] * 4


def test_planted_holes_and_unpooled_runs_are_found(tmp_path: Path) -> None:
    for make, seed in ((unpooled, 1), (unpooled, 2), (holes, 3)):
        case: Case = make(np.random.default_rng(seed), tmp_path)
        hit, planted = found(case, SECTIONS["pool"][-1](case.inputs)[0])
        assert hit == planted > 0


@pytest.mark.slow
def test_a_fair_judge_raises_no_alarm_and_equal_runs_are_not_separated() -> None:
    for name, seed in (("dl19", 0), ("dl19", 1), ("cisi", 0), ("cisi", 1)):
        assert audit(judged(name, "clean", np.random.default_rng([2, seed])).inputs).alarms == ()
    for what, least, most in (("equal", 0, 3), ("certain", 18, 20)):
        cases = [neighbours_of(what, np.random.default_rng(seed)).inputs for seed in range(20)]
        verdicts = [ranking(inputs)[1]["neighbours"]["verdict"] for inputs in cases]
        assert least <= verdicts.count(["certain"]) <= most
    found_there = ranking(neighbours_of("reversed", np.random.default_rng(5)).inputs)[0]
    assert "reversed" in {each.kind for each in found_there}


def test_the_command_shows_findings_and_writes_the_page(desk: Desk, capsys: Capture) -> None:
    (desk.folder / "runs" / "evil.run").write_text("q1 Q0 d1 1 1 <script>\n")
    (desk.folder / "teams.tsv").write_text("".join(f"run{r}\tteam{r // 3}\n" for r in range(8)))
    options = ["--teams", f"{desk.folder}/teams.tsv", "--judge-run", f"{desk.folder}/runs/run0.run"]
    page = desk.folder / "audit.html"
    told = json.loads(out(capsys, *desk.words("people", "judge"), *options, "-o", str(page), "--json"))
    weights = [each["weight"] for each in told["findings"]]
    assert weights == sorted(weights, reverse=True)
    assert {each["section"] for each in told["findings"]} >= {"scales", "pool", "ranking", "sensitivity"}
    assert all(told[name] for name in ("thresholds", "teams", "bias", "neighbours", "leaderboards"))
    assert "<title>Audit of people and judge</title>" in page.read_text()
    assert "&lt;script&gt;" in page.read_text()
    assert "<script" not in page.read_text()
    assert all(f'id="{name}-section"' in page.read_text() for name in ("findings", *SECTIONS))


def test_a_single_set_of_judgments_is_audited_and_skipped_checks_are_listed(
    desk: Desk, capsys: Capture, on_terminal: Terminal
) -> None:
    with on_terminal():
        shown = printed(capsys, *desk.words("people"))
    assert "they need a second --qrels" in shown.err
    assert "tell neighbours apart" in " ".join(shown.out.split())


def test_differing_runs_and_queries_are_intersected_with_a_note(desk: Desk, capsys: Capture) -> None:
    whole = audit(read_inputs(desk.both, [desk.folder / "runs"]))
    people, judge = desk.both
    people.write_text(people.read_text() + "only 0 d1 1\nboth 0 d1 1\n")
    judge.write_text(judge.read_text() + "both 0 d1 1\n")
    (desk.folder / "runs" / "other.run").write_text("elsewhere Q0 d1 1 1 other\n")
    (desk.folder / "runs" / "bad.run").write_text("q1 Q0 d1 1 high bad\n")
    (desk.folder / "runs" / "teams.tsv").write_text("run1\tteam1\n")
    told = json.loads(out(capsys, *desk.words("people", "judge"), "--json", status=1))
    assert (told["n_runs"], told["n_queries"]) == (8, 12)
    for part in (
        "1 query that the other",
        "1 judged query for which no run ranks anything",
        "other.run",
        "bad.run:1",
        "teams.tsv: left",
    ):
        assert part in "\n".join(told["notes"])
    assert told["pool (judge)"] == list(whole.tables["pool (judge)"])


def test_inputs_that_cannot_be_audited_are_rejected_with_the_reason(desk: Desk, capsys: Capture) -> None:
    (desk.folder / "other.qrels").write_text("x 0 d1 1\n")
    for sides, why in (
        (["people"] * 3, "3 --qrels were given"),
        (["people", "other"], "have no query in common"),
    ):
        assert why in err(capsys, *desk.words(*sides))


def test_labels_that_one_file_adds_to_the_other_are_no_agreement(desk: Desk, capsys: Capture) -> None:
    lines = (desk.folder / "people.qrels").read_text()
    (desk.folder / "merged.qrels").write_text(lines + "".join(f"q{q} 0 d1 {q % 3}\n" for q in range(12)))
    told = json.loads(out(capsys, *desk.words("people", "merged"), "--json"))
    kinds = {each["kind"] for each in told["findings"]}
    assert "added labels" in kinds
    assert kinds.isdisjoint({"agreement", "threshold", "low agreement", "tau"})
    assert any("merged.qrels contains all " in note for note in told["notes"])


def test_a_file_named_run_that_is_not_one_gives_status_1(desk: Desk, capsys: Capture) -> None:
    (desk.folder / "runs" / "four.run").write_text("q1 0 d0 1\n")
    assert "four.run" in err(capsys, *desk.words("people"), status=1)


def test_undecidable_checks_are_omitted_and_unused_inputs_are_listed(desk: Desk, capsys: Capture) -> None:
    (desk.folder / "zero.qrels").write_text("".join(f"q{q} 0 d0 0\n" for q in range(12)))
    text = out(capsys, *desk.words("zero", "people"), "--json")
    told = json.loads(text)["findings"]
    assert (told[0]["kind"], told[0]["about"]) == ("nothing relevant", "zero")
    assert {"power", "tau", "low tau"}.isdisjoint(each["kind"] for each in told)
    assert "NaN" not in text
    (desk.folder / "one.qrels").write_text("q1 0 d0 1\nq1 0 d1 0\n")
    told = json.loads(
        out(capsys, *desk.words("one"), "--judge-run", f"{desk.folder}/runs/run0.run", "--json")
    )
    assert "power" not in {each["kind"] for each in told["findings"]}
    for part in ("they need two queries or more", "--judge-run was ignored"):
        assert part in "\n".join(told["notes"])
    assert run([*desk.words("people", "people"), "--runs", f"{desk.folder}/judge.qrels", "--json"]) == 1
    told = "\n".join(json.loads(capsys.readouterr().out)["notes"])
    assert "people.qrels contains all " in told
    assert "judge.qrels:1: " in told
