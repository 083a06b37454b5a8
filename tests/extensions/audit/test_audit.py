"""The audit: its numbers against scipy and ir_measures, planted problems that it finds, and its command."""

from __future__ import annotations

import itertools
import json
import math
import re
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
from support import Terminal, err, out, printed, write_run

import converters
from converters.records import Qrel
from trecexam.extensions.audit.audit import SECTIONS, audit
from trecexam.extensions.audit.pool import dealt_p, open_ranks
from trecexam.extensions.audit.ranking import choices, ranking, smallest_difference
from trecexam.extensions.audit.reading import read_inputs
from trecexam.extensions.audit.records import AuditInputs

Qrels = Mapping[str, Mapping[str, int]]
Capture = pytest.CaptureFixture[str]
#: query_id -> doc_ids, best first.
Ranking = Mapping[str, list[str]]


def write_and_read(folder: Path, runs: Iterable[Ranking], qrels: Mapping[str, Qrels]) -> AuditInputs:
    """The inputs from files run0.run, run1.run ... and NAME.qrels."""
    for number, run in enumerate(runs):
        write_run(folder / "runs" / f"run{number}.run", run)
    for name, labels in qrels.items():
        rows = [Qrel(q, doc, label) for q, docs in labels.items() for doc, label in docs.items()]
        converters.write(rows, folder / f"{name}.qrels", "qrels")
    return read_inputs([folder / f"{name}.qrels" for name in qrels], [folder / "runs"])


class Desk:
    """Files of eight runs, twelve queries and two sets of judgments with holes, and their content."""

    def __init__(self, folder: Path) -> None:
        random, docs = np.random.default_rng(0), [f"d{d}" for d in range(60)]
        queries = [f"q{q}" for q in range(12)]
        rankings = iter(lambda: random.permutation(docs)[: random.integers(3, 50)].tolist(), None)
        self.folder = folder
        self.runs = [dict(zip(queries, rankings, strict=False)) for _ in range(8)]
        self.qrels = {
            name: {q: {d: int(random.integers(-1, top + 1)) for d in docs[::2]} for q in queries}
            for name, top in (("people", 3), ("judge", 2))
        }
        self.inputs = write_and_read(folder, self.runs, self.qrels)

    def add(self, name: str, text: str) -> Path:
        """Add lines to a file, or make the file."""
        with (self.folder / name).open("a") as file:
            file.write(text)
        return self.folder / name

    def words(self, sides: str, *more: object) -> list[str]:
        """The command line for these sets of judgments."""
        options = [word for side in sides.split() for word in ("--qrels", f"{self.folder}/{side}.qrels")]
        return ["audit", *options, "--runs", f"{self.folder}/runs", *map(str, more)]

    def told(self, capsys: Capture, sides: str, *more: object, status: int = 0) -> dict[str, Any]:
        """The JSON of the command, with its notes as one text and the kinds of its findings."""
        text = out(capsys, *self.words(sides, *more), "--json", status=status)
        assert "NaN" not in text
        found: dict[str, Any] = json.loads(text)
        kinds = {each["kind"] for each in found["findings"]}
        return found | {"notes": "\n".join(found["notes"]), "kinds": kinds}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_values_of_all_choices_equal_ir_measures(desk: Desk) -> None:
    inputs = desk.inputs
    for side in inputs.sides:
        measures = choices(side, 7)
        for name, ours in zip(measures, inputs.values(side, measures.values()), strict=True):
            kind, rel, k = re.fullmatch(r"(\w+?)(?:\(rel=(\d)\))?@(\d+)", name).groups()  # type: ignore[union-attr]
            measure = getattr(ir_measures, kind) @ int(k)
            if rel is not None:
                gains = {label: int(label >= int(rel)) for label in range(4)}
                measure = measure(gains=gains) if kind == "nDCG" else measure(rel=int(rel))
            for run, of_run in zip(desk.runs, ours, strict=True):
                scores = {q: {doc: float(-rank) for rank, doc in enumerate(docs)} for q, docs in run.items()}
                found_by_query = ir_measures.iter_calc([measure], desk.qrels[side.name], scores)
                theirs = {each.query_id: each.value for each in found_by_query}
                # ir_measures omits queries without a value.
                expected = [theirs.get(query, 0.0) for query in sorted(run)]
                assert of_run == pytest.approx(expected, abs=1e-12), name


@st.composite
def small_cases(draw: st.DrawFn) -> tuple[tuple[Ranking, ...], Qrels]:
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


def naive_ranks(k: int, runs: Iterable[Ranking], qrels: Qrels) -> list[int]:
    means = [round(sum(naive_ndcg(k, run[q], qrels[q]) for q in qrels) / len(qrels), 12) for run in runs]
    return [1 + sum(other > mean for other in means) for mean in means]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(small_cases(), st.integers(1, 3))
def test_the_rank_is_within_the_bounds_for_all_labels_of_unjudged_passages(
    case: tuple[tuple[Ranking, ...], Qrels], k: int
) -> None:
    runs, qrels = case
    labels = range(max(1, *(label for of in qrels.values() for label in of.values())) + 1)
    free = sorted({(q, d) for run in runs for q in qrels for d in run[q] if d not in qrels[q]})
    # Four would be 256 labellings.
    assume(len(free) <= 3)
    # Deeper passages stay without a label.
    free = [(q, d) for q, d in free if any(d in run[q][:k] for run in runs)]
    inputs = replace(read(runs, qrels), cutoff=k)
    rank, best, worst = (column.tolist() for column in open_ranks(inputs, inputs.sides[0]).values())
    for given_labels in itertools.product(labels, repeat=len(free)):
        full = {query: dict(of) for query, of in qrels.items()}
        for (query, doc), label in zip(free, given_labels, strict=True):
            full[query][doc] = label
        ranks = naive_ranks(k, runs, full)
        assert all(low <= true <= high for low, true, high in zip(best, ranks, worst, strict=True)), full
        if not any(given_labels):
            assert rank == ranks
        if not free:
            assert best == worst


def read(runs: Iterable[Ranking], qrels: Qrels) -> AuditInputs:
    with tempfile.TemporaryDirectory() as folder:
        return write_and_read(Path(folder), runs, {"a": qrels})


def test_a_deep_unjudged_passage_cannot_lower_the_best_rank() -> None:
    nones = [f"n{n}" for n in range(9)]
    other = {"q": [nones[0], "rel", *nones[1:]]}
    for first, ranks in (
        # With the highest label at rank ten the ideal rises more than the run does.
        (["rel", *nones[:8], "u"], [[1, 2], [1, 2], [1, 2]]),
        # At rank one both are right: the run is first, or second.
        (["u", *nones], [[2, 1], [1, 1], [2, 2]]),
    ):
        inputs = read(({"q": first}, other), {"q": {"rel": 3, **dict.fromkeys(nones, 0)}})
        pool = audit(inputs).tables["pool"]
        assert [pool[name] for name in ("rank", "best rank", "worst rank")] == ranks


def test_on_dl19_ranks_by_all_judgments_are_within_bounds_and_pooled_runs_move_little(tmp_path: Path) -> None:
    base = whole("dl19")
    for team, k in itertools.product(("idst", "bm25", "TUW19"), (5, 10)):
        first, ours = base.rows[:, :, :k], base.teams == team
        inputs = replace(without(base, np.setdiff1d(first[ours], first[~ours]), tmp_path), cutoff=k)
        whole_ranks = open_ranks(replace(base, cutoff=k), base.sides[0])["rank"]
        _, best, worst = open_ranks(inputs, inputs.sides[0]).values()
        assert ((best <= whole_ranks) & (whole_ranks <= worst)).all()
        assert (worst - best)[~ours].mean() < 8


def test_tests_tau_and_power_equal_scipy(desk: Desk) -> None:
    inputs = desk.inputs
    people, judge = (inputs.main_values(side) for side in inputs.sides)
    tables = audit(inputs).tables
    tau = stats.kendalltau(people.mean(axis=1), judge.mean(axis=1)).statistic
    assert tables["correlation"]["tau"]["value"] == pytest.approx(tau)
    near = tables["neighbours"]
    rows = [inputs.runs.tolist().index(name) for name in (*near["better"], near["worse"][-1])]
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


def test_the_command_shows_findings_and_writes_the_page(
    desk: Desk, capsys: Capture, on_terminal: Terminal
) -> None:
    desk.add("runs/evil.run", "q1 Q0 d1 1 1 <script>\n")
    teams = desk.add("teams.tsv", "".join(f"run{r}\tteam{r // 3}\n" for r in range(8)))
    options = ["--teams", teams, "--judge-run", desk.folder / "runs" / "run0.run"]
    told = desk.told(capsys, "people judge", *options, "-o", desk.folder / "audit.html")
    weights = [each["weight"] for each in told["findings"]]
    assert weights == sorted(weights, reverse=True)
    assert {each["section"] for each in told["findings"]} >= {"scales", "pool", "ranking", "sensitivity"}
    assert all(told[name] for name in ("thresholds", "teams", "bias", "neighbours", "leaderboards"))
    page = (desk.folder / "audit.html").read_text()
    assert "<title>Audit of people and judge</title>" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert all(f'id="{name}-section"' in page for name in ("findings", *SECTIONS))
    with on_terminal():
        shown = printed(capsys, *desk.words("people"))
    assert "they need a second --qrels" in shown.err
    assert "tell neighbours apart" in " ".join(shown.out.split())


def test_differing_runs_and_queries_are_intersected_with_a_note(desk: Desk, capsys: Capture) -> None:
    desk.add("people.qrels", "only 0 d1 1\nboth 0 d1 1\n")
    desk.add("judge.qrels", "both 0 d1 1\n")
    desk.add("runs/other.run", "elsewhere Q0 d1 1 1 other\n")
    desk.add("runs/bad.run", "q1 Q0 d1 1 high bad\n")
    desk.add("runs/teams.tsv", "run1\tteam1\n")
    told = desk.told(capsys, "people judge", status=1)
    assert (told["n_runs"], told["n_queries"]) == (8, 12)
    other = "1 query that the other", "1 judged query for which no run ranks anything"
    assert all(part in told["notes"] for part in (*other, "other.run", "bad.run:1", "teams.tsv: left"))
    assert told["pool (judge)"] == list(audit(desk.inputs).tables["pool (judge)"])


def test_inputs_that_cannot_be_audited_are_rejected_with_the_reason(desk: Desk, capsys: Capture) -> None:
    desk.add("other.qrels", "x 0 d1 1\n")
    assert "3 --qrels were given" in err(capsys, *desk.words("people people people"))
    assert "have no query in common" in err(capsys, *desk.words("people other"))
    desk.add("runs/four.run", "q1 0 d0 1\n")
    assert "four.run" in err(capsys, *desk.words("people"), status=1)
    told = desk.told(capsys, "people judge", "--runs", desk.folder / "judge.qrels", status=1)
    assert "judge.qrels:1: " in told["notes"]


def test_undecidable_checks_are_omitted_and_unused_inputs_are_listed(desk: Desk, capsys: Capture) -> None:
    desk.add("zero.qrels", "".join(f"q{q} 0 d0 0\n" for q in range(12)))
    told = desk.told(capsys, "zero people")
    assert (told["findings"][0]["kind"], told["findings"][0]["about"]) == ("nothing relevant", "zero")
    assert told["kinds"].isdisjoint({"power", "tau", "low tau"})
    desk.add("one.qrels", "q1 0 d0 1\nq1 0 d1 0\n")
    told = desk.told(capsys, "one", "--judge-run", desk.folder / "runs" / "run0.run")
    assert "power" not in told["kinds"]
    assert "they need two queries or more" in told["notes"]
    assert "--judge-run was ignored" in told["notes"]
    # Labels that one file adds to the other are no agreement.
    desk.add("merged.qrels", (desk.folder / "people.qrels").read_text() + "q1 0 d1 1\nq2 0 d3 2\n")
    for sides in ("people merged", "people people"):
        told = desk.told(capsys, sides)
        assert told["kinds"].isdisjoint({"agreement", "threshold", "low agreement", "tau"})
        assert "added labels" in told["kinds"]
        assert f"{sides.split()[1]}.qrels contains all " in told["notes"]
