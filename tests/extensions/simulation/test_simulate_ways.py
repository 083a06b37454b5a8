"""`trecexam simulate --by`: learned labels, a constant label and condensed lists next to holes and fill."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import pytest
from learnable import WordEncoder, make_learnable
from scipy.stats import kendalltau
from support import labels_of, printed, tsv_table

import trecexam
import trecexam.extensions.learn.learned_pool as learning
from trecexam.cli.main import run

WAYS = ("--by", "learned", "--by", "label", "--by", "condensed")
Labels = Mapping[tuple[str, str], int]
RUNS = ("a", "b", "c", "d")


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "track_encoder", lambda track: WordEncoder())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_learnable(tmp_path_factory.mktemp("simulate") / "track", queries=4, docs=20)


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, str]]:
    return tsv_table(printed(capsys, "simulate", *arguments, "--official-measure", "nDCG@10").out)


def shifts(capsys: pytest.CaptureFixture[str], root: Path, *options: str) -> list[dict[str, object]]:
    out = printed(capsys, "simulate", root, *options, "--official-measure", "nDCG@10", "--json").out
    return list(json.loads(out)["shifts"])


def rankings(root: Path) -> dict[str, dict[str, list[str]]]:
    """Run -> query -> documents."""
    ranked: dict[str, dict[str, list[str]]] = {name: {} for name in RUNS}
    for name in RUNS:
        for line in (root / "runs" / f"{name}.run").read_text().splitlines():
            q, _, doc, *_ = line.split()
            ranked[name].setdefault(q, []).append(doc)
    return ranked


def board(root: Path, labels: Labels, without: frozenset[tuple[str, str]] = frozenset()) -> dict[str, float]:
    """Run -> mean nDCG@10."""
    qrels = [ir_measures.Qrel(q, doc, label) for (q, doc), label in labels.items()]
    means = {}
    for name, of_run in rankings(root).items():
        lines = [
            ir_measures.ScoredDoc(q, doc, -place)
            for q, docs in of_run.items()
            for place, doc in enumerate(doc for doc in docs if (q, doc) not in without)
        ]
        means[name] = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, lines)[ir_measures.nDCG @ 10]
    return means


def rank(means: Mapping[str, float], name: str) -> int:
    return 1 + sum(round(other, 9) > round(means[name], 9) for other in means.values())


def test_passages_found_by_only_one_run_are_predicted_from_the_rest(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    official, ranked = labels_of(root / "qrels.txt"), rankings(root)
    full = board(root, official)
    rows = {row["run"]: row for row in simulated(capsys, root, *WAYS)}
    for name in RUNS[:2]:
        dropped = frozenset(
            (q, doc)
            for (q, doc) in official
            if doc in ranked[name].get(q, ())
            and not any(doc in ranked[other].get(q, ()) for other in RUNS if other != name)
        )
        assert dropped
        remain = {place: label for place, label in official.items() if place not in dropped}
        copy = Path(shutil.copytree(root, tmp_path / name))
        (copy / "qrels.txt").write_text(
            "".join(f"{q} 0 {doc} {label}\n" for (q, doc), label in remain.items())
        )
        with trecexam.open_track(copy) as track:
            taught = {(row[0], row[1]): row[4] for row in track.learn.labels().table.rows}
        boards = {
            "learned": board(root, {**remain, **{place: taught[place] for place in dropped}}),
            "label:1": board(root, {**remain, **dict.fromkeys(dropped, 1)}),
            "label:2": board(root, {**remain, **dict.fromkeys(dropped, 2)}),
            "condensed": board(root, remain, dropped),
        }
        for way, means in boards.items():
            assert float(rows[name][f"mean.{way}"]) == pytest.approx(means[name], abs=1e-6)
            assert int(rows[name][f"rank.{way}"]) == rank(means, name)
            tau = kendalltau([full[run_] for run_ in RUNS], [means[run_] for run_ in RUNS]).statistic
            assert float(rows[name][f"tau.{way}"]) == pytest.approx(tau, abs=1e-6)


def test_without_other_methods_the_tables_are_unchanged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ((), ("--judgments", "--repeats", "2")):
        plain = simulated(capsys, root, *options)
        more = simulated(capsys, root, *options, "--by", "label:1")
        assert [{name: row[name] for name in plain[0]} for row in more] == plain
    moved = shifts(capsys, root, "--by", "label:1")
    assert [row for row in moved if row["judgments"] != "label:1"] == shifts(capsys, root)


def test_steps_with_too_few_judgments_to_learn_from_are_counted(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "few"))
    (copy / "qrels.txt").write_text("q0 0 q0-d01 0\nq0 0 q0-d02 2\n")
    capsys.readouterr()
    assert run(["simulate", "--judgments", str(copy), "--repeats", "1", "--by", "learned"]) == 0
    assert "steps too few judgments remained to learn from; `learned` leaves holes there" in (
        capsys.readouterr().err
    )


def test_an_unknown_method_is_rejected(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(root), "--by", "people"]) == 2
    assert "--by people is unknown: give learned, condensed, label or label:N" in capsys.readouterr().err
