"""`settle`: parsing of claims, their probability, and what to judge."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from learnable import WordEncoder, make_learnable

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.learning import fit
from trecexam.extensions.learn.arithmetic.settling import Standing, standing
from trecexam.extensions.learn.learned_pool import gather_data
from trecexam.extensions.learn.settle import Settled
from trecexam.line.loader import opened


@pytest.fixture
def partly_judged(tmp_path: Path) -> Path:
    """Every fourth passage is judged, so that orders are undecided."""
    root = make_learnable(tmp_path / "half", queries=6, docs=20, runs="abcdef")
    lines = (root / "qrels.txt").read_text().splitlines(keepends=True)
    (root / "qrels.txt").write_text("".join(lines[::3]))
    return root


def settle_claim(root: Path, claim: str, **options: int) -> Settled:
    with trecexam.open_track(root) as track:
        return track.learn.settle(claim, **options)  # type: ignore[no-any-return]


def names_and_standing(root: Path) -> tuple[tuple[str, ...], Standing]:
    with opened(root) as loader:
        track = loader.load()
        queries = gather_data(track, encoder=WordEncoder()).queries
        return tuple(track.runs), standing(fit(queries), queries, 10)


def rename(root: Path, old: str, new: str) -> None:
    """A run is named by the tag in its lines."""
    path = root / "runs" / f"{old}.run"
    path.write_text(path.read_text().replace(f" {old}\n", f" {new}\n"))


@pytest.mark.parametrize(
    ("claim", "runs"),
    [("a > b", "ab"), ("a>c>b", "acb"), ("  d  >  a ", "da"), ("a > b > c > d", "abcd")],
)
def test_a_claim_lists_runs_in_order(partly_judged: Path, claim: str, runs: str) -> None:
    found = settle_claim(partly_judged, claim).claim
    assert (found.runs, found.first) == (tuple(runs), False)
    assert str(found) == " > ".join(runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "n"),
    [
        ("the first five", 5),
        ("first 3", 3),
        ("The best two runs", 2),
        ("top-4", 4),
        ("top  1", 1),
        ("the first one", 1),
    ],
)
def test_a_claim_may_be_about_the_first_runs(partly_judged: Path, claim: str, n: int) -> None:
    names, known = names_and_standing(partly_judged)
    found = settle_claim(partly_judged, claim).claim
    best = [names[at] for at in np.argsort(-known.mean)[:n]]
    assert (found.runs, found.first) == (tuple(best), True)
    assert str(found) == f"the first {n}: {', '.join(best)}"


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("a > bb", "no run 'bb'; did you mean 'b'"),
        ("a > zzzzz", "no run 'zzzzz'; the runs are a, b, c, d, e and 1 more"),
        ("a", "'a' is not a claim"),
        ("", "'' is not a claim"),
        ("a >", "'a >' is not a claim"),
        ("a > > b", "is not a claim"),
        ("a > b > a", "'a' is named twice"),
        ("the first six", "'the first six': the track has 6 runs"),
        ("first 0", "'first 0': the track has 6 runs"),
        ("the first eleven", "'the first eleven' is not a claim"),
    ],
)
def test_an_invalid_claim_is_an_error_that_shows_the_syntax(
    partly_judged: Path, capsys: pytest.CaptureFixture[str], claim: str, why: str
) -> None:
    assert run(["settle", str(partly_judged), claim]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
    if line.endswith("claim"):
        assert '"A > B", "A > B > C" or "the first five"' in line


def test_a_run_name_may_contain_the_separator(partly_judged: Path) -> None:
    for old, new in (("a", "x>y"), ("b", "x"), ("c", "y>z")):
        rename(partly_judged, old, new)
    for claim, runs in (
        ("x>y > x", ("x>y", "x")),
        ("x > y>z", ("x", "y>z")),
        ("x>y>z", ("x", "y>z")),
        ("x>x>y>d", ("x", "x>y", "d")),
    ):
        assert settle_claim(partly_judged, claim).claim.runs == runs
    with pytest.raises(TrecexamError, match="'x>y' is not a claim"):
        settle_claim(partly_judged, "x>y")
    # Once "y" is a run, too, the claim is ambiguous and both are named.
    rename(partly_judged, "d", "y")
    assert settle_claim(partly_judged, "x>y").claim.runs == ("x", "y")


def test_the_probability_is_that_of_the_mean_scores_of_the_runs(partly_judged: Path) -> None:
    names, known = names_and_standing(partly_judged)
    verdicts = set()
    for a, b in ((0, 1), (1, 0), (1, 2), (3, 2), (4, 3), (5, 0)):
        found = settle_claim(partly_judged, f"{names[a]} > {names[b]}")
        assert found.probability == pytest.approx(float(known.above[a, b]))
        ((run_, other, difference, deviation, probability, judgments),) = found.pairs
        assert (run_, other, probability) == (names[a], names[b], found.probability)
        assert difference == pytest.approx(known.mean[a] - known.mean[b])
        variance = known.covariance[a, a] + known.covariance[b, b] - 2 * known.covariance[a, b]
        assert deviation == pytest.approx(math.sqrt(variance))
        is_open = 0.05 < found.probability < 0.95
        assert found.verdict == ("open" if is_open else "settled" if found.probability > 0.5 else "refuted")
        assert judgments == known.needed((a, b), 0.95)
        assert found.planned == (judgments if is_open else 0)
        assert bool(found.plan) == is_open
        verdicts.add(found.verdict)
    assert {"open", "settled"} <= verdicts
    drawn = known.draw()
    a, b, c = (names.index(name) for name in "acd")
    share = ((drawn[:, a] > drawn[:, b]) & (drawn[:, b] > drawn[:, c])).mean()
    found = settle_claim(partly_judged, "a > c > d")
    assert found.probability == pytest.approx(share)
    # Each pair must be certain enough that both together are.
    assert [row[-1] for row in found.pairs] == [
        known.needed((a, b), 0.95**0.5),
        known.needed((b, c), 0.95**0.5),
    ]
    assert known.needed((b, c), 0.95**0.5) > known.needed((b, c), 0.95)
    best = set(np.argsort(-known.mean)[:2].tolist())
    top = [set(np.argsort(-of_draw)[:2].tolist()) == best for of_draw in drawn]
    found = settle_claim(partly_judged, "the first two")
    assert found.probability == pytest.approx(np.mean(top))
    assert len(found.pairs) == 8


def an_open_pair(root: Path) -> str:
    names, known = names_and_standing(root)
    at = min(itertools.permutations(range(6), 2), key=lambda pair: abs(known.above[pair] - 0.5))
    return f"{names[at[0]]} > {names[at[1]]}"


@pytest.mark.slow
def test_the_plan_is_ordered_by_how_much_a_judgment_tells_about_the_pair(
    partly_judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = an_open_pair(partly_judged)
    names, known = names_and_standing(partly_judged)
    first, second = claim.split(" > ")
    gains = known.gains([(names.index(first), names.index(second))])
    assert run(["settle", str(partly_judged), claim]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out), delimiter="\t"))
    tells = [float(row["tells"]) for row in rows]
    assert tells == sorted(tells, reverse=True)
    assert sum(tells) == pytest.approx(1, abs=1e-4)
    assert len(rows) == sum((of > 0).sum() for of in gains)
    with opened(partly_judged) as loader:
        queries = gather_data(loader.load(), encoder=WordEncoder()).queries
    by_hand = {
        (query.query_id, doc): gain
        for query, of in zip(queries, gains, strict=True)
        for doc, gain in zip(query.doc_ids, of.tolist(), strict=True)
    }
    total = sum(by_hand.values())
    for row in rows:
        share = by_hand[row["query_id"], row["doc_id"]] / total
        assert float(row["tells"]) == pytest.approx(share, abs=1e-5)
    assert f"{claim}: open, probability 0." in err
    assert "decide it, if the differences stay as they are expected to be" in err
    for most in (0, 3):
        assert (
            settle_claim(partly_judged, claim, most=most).plan
            == settle_claim(partly_judged, claim).plan[:most]
        )
    with pytest.raises(TrecexamError, match="most = -1: at least 0"):
        settle_claim(partly_judged, claim, most=-1)


def test_json_has_claim_pairs_and_plan(partly_judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = an_open_pair(partly_judged)
    assert run(["settle", str(partly_judged), claim, "--json", "--most", "2"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["claimed"], value["verdict"]) == (claim, "open")
    assert len(value["plan"]) == 2
    assert value["claim"][0]["probability"] == value["probability"] == value["pairs"][0]["probability"]
    assert value["judgments"] == value["pairs"][0]["judgments"] > 0
    assert run(["settle", str(partly_judged), "the first two"]) == 0
    assert (
        "the probability for a set of runs is rough and mostly too high: see the page"
        in capsys.readouterr().err
    )


def test_judging_the_plan_settles_or_refutes_the_claim(partly_judged: Path) -> None:
    claim = an_open_pair(partly_judged)
    pool = {
        row["docid"]: row["text"].split()[:3]
        for row in map(json.loads, (partly_judged / "passages.jsonl").read_text().splitlines())
    }
    for _ in range(30):
        found = settle_claim(partly_judged, claim, most=10)
        if found.verdict != "open":
            break
        with (partly_judged / "qrels.txt").open("a") as qrels:
            qrels.writelines(f"{q} 0 {doc} {len(set(pool[doc])) - 1}\n" for q, doc, *_ in found.plan)
    assert found.verdict in ("settled", "refuted")
    assert found.plan == ()
    assert found.planned == 0


def judge_all(root: Path) -> None:
    pooled = {
        tuple(line.split()[0:3:2])
        for path in (root / "runs").iterdir()
        for line in path.read_text().splitlines()
    }
    (root / "qrels.txt").write_text(
        "".join(f"{q} 0 {doc} {int(doc[-2:]) % 3}\n" for q, doc in sorted(pooled))
    )


@pytest.mark.slow
def test_if_all_is_judged_a_claim_is_true_or_false(partly_judged: Path) -> None:
    judge_all(partly_judged)
    import ir_measures

    qrels = list(ir_measures.read_trec_qrels(str(partly_judged / "qrels.txt")))
    values = {
        name: ir_measures.parse_measure("nDCG@10").calc_aggregate(
            qrels, list(ir_measures.read_trec_run(str(partly_judged / "runs" / f"{name}.run")))
        )
        for name in "abcdef"
    }
    for a, b in itertools.pairwise("abcdefa"):
        found = settle_claim(partly_judged, f"{a} > {b}")
        assert found.probability == (values[a] > values[b])
        assert found.verdict == ("settled" if values[a] > values[b] else "refuted")
        assert found.plan == ()
    order = sorted(values, key=lambda name: -values[name])
    assert settle_claim(partly_judged, " > ".join(order)).probability == 1
    assert settle_claim(partly_judged, " > ".join(order[::-1])).probability == 0
    assert settle_claim(partly_judged, "the first three").claim.runs == tuple(order[:3])
    assert settle_claim(partly_judged, "the first three").verdict == "settled"


@pytest.mark.slow
@pytest.mark.parametrize("all_judged", [False, True])
def test_a_run_is_not_better_than_its_copy(partly_judged: Path, all_judged: bool) -> None:
    (partly_judged / "runs" / "z.run").write_text((partly_judged / "runs" / "b.run").read_text())
    if all_judged:
        judge_all(partly_judged)
    for claim in ("b > z", "z > b", "a > b > z", "b > z > a"):
        found = settle_claim(partly_judged, claim)
        assert (found.probability, found.verdict, found.plan) == (0, "refuted", ())


@pytest.mark.parametrize("n", [2, 5])
def test_with_fewer_judgments_than_queries_no_probability_is_given(
    partly_judged: Path, capsys: pytest.CaptureFixture[str], n: int
) -> None:
    labels = [f"q{at} 0 q{at}-d01 {at % 2}\n" for at in range(n)]
    (partly_judged / "qrels.txt").write_text("".join(labels))
    assert run(["settle", str(partly_judged), "a > b"]) == 2
    error = capsys.readouterr().err
    assert f"{n} judgments of 6 queries: with fewer than one per query no probability can be trusted" in error
    assert "learned-next" in error
    (partly_judged / "qrels.txt").write_text(
        "".join(labels) + "".join(f"q5 0 q5-d0{at} 2\n" for at in range(6 - n))
    )
    assert run(["settle", str(partly_judged), "a > b"]) == 0


def test_without_runs_or_judgments_the_command_says_so(
    partly_judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (partly_judged / "qrels.txt").unlink()
    assert run(["settle", str(partly_judged), "a > b"]) == 2
    assert "no official judgments" in capsys.readouterr().err
    for path in (partly_judged / "runs").iterdir():
        path.unlink()
    assert run(["settle", str(partly_judged), "a > b"]) == 2
    assert "no runs yet" in capsys.readouterr().err


def test_passages_rated_as_a_whole_count_as_judged(partly_judged: Path) -> None:
    claim = an_open_pair(partly_judged)
    query_id, doc_id, *_ = settle_claim(partly_judged, claim).plan[0]
    with trecexam.open_track(partly_judged) as track:
        track.override(query_id, doc_id, 1, who="Ann", why="because")
    assert (query_id, doc_id) not in {row[:2] for row in settle_claim(partly_judged, claim).plan}


def test_the_plan_of_settle_can_be_judged(partly_judged: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.tsv"
    assert (
        run(["settle", str(partly_judged), an_open_pair(partly_judged), "--most", "4", "-o", str(plan)]) == 0
    )
    with (partly_judged / "trecexam.toml").open("a") as config:
        config.write('\n[judging]\nscale = ["no", "partly", "fully"]\n')
    assert run(["judge", "plan", str(partly_judged), "--passages", str(plan), "--assessors", "ann,bob"]) == 0
    rows = [line.split("\t")[1:3] for line in (partly_judged / "judging.tsv").read_text().splitlines()[1:]]
    planned = [line.split("\t")[:2] for line in plan.read_text().splitlines()[1:]]
    assert sorted(rows) == sorted(planned)
