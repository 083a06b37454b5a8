from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashGrader, Terminal, make_small_track, write_run

import trecexam
from converters.records import Item
from trecexam.bank import Bank
from trecexam.bank.model import item_digest
from trecexam.cli.main import run
from trecexam.config import CONFIG_NAME
from trecexam.extensions.banks.diff import BankDiff, bank_changes

Capture = pytest.CaptureFixture[str]
Rows = list[dict[str, Any]]


def bank(root: Path) -> Path:
    return root / "bank.questions.jsonl"


def variant(root: Path, path: Path, change: Callable[[Rows], object]) -> Path:
    """The track's bank with a change, in another file."""
    rows = [json.loads(line) for line in bank(root).read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def retire_two(rows: Rows) -> None:
    for item in rows[0]["questions"][1:3]:
        item["retired"] = True


def graded_with(root: Path, path: Path) -> None:
    """Adds the grades of another bank to the store."""
    own = bank(root).read_bytes()
    shutil.copy(path, bank(root))
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.grading.grade()
    bank(root).write_bytes(own)


def outputs_under(root: Path, path: Path, measures: list[str]) -> tuple[dict[str, int], dict[str, Any]]:
    """Labels and leaderboards of a copy of the track graded with another bank."""
    copy = root.parent / f"copy-{path.stem}"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("out", ".trecexam"))
    shutil.copy(path, bank(copy))
    with trecexam.open_track(copy, grader=HashGrader()) as track:
        track.grading.grade()
        labels = {f"{row.query_id} {row.doc_id}": row.relevance for row in track.qrels()}
        boards = {name: track.leaderboard([name]) for name in measures}
    return labels, {name: {row.run: row.scores[0].mean for row in b.rows} for name, b in boards.items()}


def rank(means: dict[str, float], name: str) -> int:
    return 1 + sum(round(other, 12) > round(means[name], 12) for other in means.values())


def tau_b(one: dict[str, float], other: dict[str, float]) -> float:
    def sign(means: dict[str, float], a: str, b: str) -> int:
        x, y = round(means[a], 12), round(means[b], 12)
        return (x > y) - (x < y)

    pairs = [(sign(one, a, b), sign(other, a, b)) for a, b in combinations(sorted(one), 2)]
    untied = [sum(pair[side] != 0 for pair in pairs) for side in (0, 1)]
    return sum(a * b for a, b in pairs) / sqrt(untied[0] * untied[1])


def difference(root: Path, old: Path, new: Path, measures: list[str] | None = None) -> BankDiff:
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        found = track.bank.diff(old, new, measures)
    assert grader.asked == []
    return found


@pytest.fixture(scope="module")
def eight_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(tmp_path_factory.mktemp("diff") / "track")
    for number in range(3, 8):
        docs = [f"d{(d * (number * 2 - 1)) % 12:02}" for d in range(9)]
        write_run(
            root / "runs" / f"run{number}.run",
            {q: list(dict.fromkeys(f"{q}-{d}" for d in docs)) for q in ("q1", "q2", "q3")},
        )
    with trecexam.open_track(root, grader=HashGrader()) as opened:
        opened.update()
    return root


@pytest.fixture
def track(eight_runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(eight_runs, tmp_path / "track"))


def reword(rows: Rows) -> None:
    retire_two(rows)
    rows[1]["questions"][0]["question_text"] = "another question?"
    rows[2]["questions"].append({"question_id": "q3/new", "question_text": "a new one?"})
    del rows[2]["questions"][1]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (retire_two, "items: 2 retired in query q1; OLD 12 items of 3 queries, NEW 10 items of 3 queries"),
        (reword, "NEW 10 items of 3 queries (2 more retired)"),
        (lambda rows: rows.pop(1), "only OLD has query q2: each mean is over all queries of its bank"),
        (lambda rows: None, "no item differs; "),
    ],
)
def test_labels_ranks_means_and_tau_equal_those_of_two_updates(
    track: Path, tmp_path: Path, change: Callable[[Rows], object], note: str
) -> None:
    measures = ["P(rel=4)@5", "nDCG@10", "Cover(rel=4)@8", "alpha_nDCG@8"]
    new = variant(track, tmp_path / "new.jsonl", change)
    graded_with(track, new)
    found = difference(track, bank(track), new, measures)
    (old_labels, old_means), (new_labels, new_means) = (
        outputs_under(track, path, measures) for path in (bank(track), new)
    )
    assert {
        f"{row['query_id']} {row['doc_id']}": (row["label.old"], row["label.new"]) for row in found.labels
    } == {
        key: (old_labels.get(key), new_labels.get(key))
        for key in old_labels.keys() | new_labels.keys()
        if old_labels.get(key) != new_labels.get(key)
    }
    assert found.measures["measure"] == measures
    for by in found.measures:
        before, after = old_means[by["measure"]], new_means[by["measure"]]
        assert by["kendall_tau"] == pytest.approx(tau_b(before, after))
        rows = [row for row in found.runs if row["measure"] == by["measure"]]
        assert {row["run"] for row in rows} == set(before) == set(after)
        for row in rows:
            run = row["run"]
            assert (row["mean.old"], row["mean.new"]) == pytest.approx((before[run], after[run]))
            assert (row["rank.old"], row["rank.new"]) == (rank(before, run), rank(after, run))
        assert by["reranked"] == sum(rank(before, name) != rank(after, name) for name in before)
        assert by["runs"] == len(rows)
    assert found.new.ungraded == {}
    assert any(note in each for each in found.notes)


def test_nothing_is_written_and_the_open_track_is_unchanged(track: Path, tmp_path: Path) -> None:
    new = variant(track, tmp_path / "new.jsonl", reword)

    def state() -> dict[str, str]:
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in track.rglob("*")
            if path.is_file() and not path.name.endswith(("-shm", "-wal"))
        }

    with trecexam.open_track(track, grader=HashGrader()) as opened:
        opened.update()
    before = state()
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        board, status = opened.leaderboard(), opened.status()
        opened.bank.diff(bank(track), new)
        assert opened.leaderboard() == board
        assert opened.status() == status
        assert not opened.update().changed
    assert state() == before


def test_items_without_grades_are_counted_and_listed(track: Path, tmp_path: Path) -> None:
    new = variant(track, tmp_path / "new.jsonl", reword)
    found = difference(track, bank(track), new)
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        pooled = {q: {r["doc_id"] for r in opened.grades() if r["query_id"] == q} for q in ("q2", "q3")}
    n_cells = {"q2/0": len(pooled["q2"]), "q3/new": len(pooled["q3"])}
    assert (found.old.ungraded, found.new.ungraded) == ({}, n_cells)
    (note,) = [note for note in found.notes if "without a grade" in note]
    assert note.startswith(
        f"NEW has {sum(n_cells.values())} cells without a grade, of 2 items (q2/0, q3/new): run `"
    )
    # Missing grades can only raise a label of the new bank.
    low = {(row["query_id"], row["doc_id"]): row["label.new"] or 0 for row in found.labels}
    graded_with(track, new)
    full = difference(track, bank(track), new)
    for row in full.labels:
        assert low.get((row["query_id"], row["doc_id"]), 0) <= (row["label.new"] or 0)


def test_the_command_prints_runs_that_change_rank_and_a_summary(
    graded: Path, tmp_path: Path, capsys: Capture, on_terminal: Terminal
) -> None:
    old = tmp_path / "old.jsonl"
    shutil.copy(bank(graded), old)
    variant(graded, bank(graded), retire_two)
    assert run(["watch", str(graded), "--once"]) == 0
    capsys.readouterr()
    command = ["bank", "diff", str(old), str(bank(graded)), str(graded), "-m", "Cover(rel=4)@8"]
    assert run(command) == 0
    out, err = capsys.readouterr()
    header, *rows = [line.split("\t") for line in out.splitlines()]
    assert header[:7] == ["run", "measure", "rank.old", "rank.new", "move", "mean.old", "mean.new"]
    assert {row[0] for row in rows} == {"run0", "run1", "run2"}
    for row in rows:
        assert int(row[4]) == int(row[2]) - int(row[3])
    assert err.splitlines()[0] == (
        "items: 2 retired in query q1; OLD 12 items of 3 queries, NEW 10 items of 3 queries (2 more retired)"
    )
    assert "without a grade" not in err
    assert run([*command, "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert [(row["item_id"], row["change"]) for row in value["items"]] == [
        ("q1/1", "retired"),
        ("q1/2", "retired"),
    ]
    assert list(value["labels"][0]) == ["query_id", "doc_id", "label.old", "label.new"]
    assert all(row["label.old"] > row["label.new"] for row in value["labels"])
    assert [str(row["rank.new"]) for row in value["runs"]] == [row[3] for row in rows]
    assert (value["new"]["items"], value["new"]["retired_items"]) == (10, 2)
    with on_terminal():
        assert run(command[:-2]) == 0
    shown = capsys.readouterr().out
    assert shown.index("rank.new") < shown.index("q1/2") < shown.index("label.new")


def test_each_compared_bank_file_replaces_the_track_file_of_its_kind(track: Path, tmp_path: Path) -> None:
    nuggets = track / "bank.nuggets.jsonl"
    nuggets.write_text('{"query_id": "q1", "nugget_id": "n1", "nugget": "a fact"}\n')
    with trecexam.open_track(track, grader=HashGrader()) as opened:
        opened.update()
    old = variant(track, tmp_path / "old.jsonl", lambda rows: None)
    variant(track, bank(track), retire_two)
    found = difference(track, old, bank(track))
    assert found.new.files == ("bank.questions.jsonl", "bank.nuggets.jsonl")
    assert (found.old.items, found.new.items) == (13, 11)
    assert [row.change for row in found.items] == ["retired", "retired"]
    new = variant(track, tmp_path / "new.jsonl", retire_two)
    whole = difference(track, old, new)
    assert (whole.old.items, whole.new.items) == (12, 10)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{\n", "new.jsonl:1: not valid JSON"),
        ("", "new.jsonl: the file is empty"),
        (
            '{"query_id": "q1", "question": "a?", "retired": true}\n',
            "new.jsonl: every item that could be asked about is retired",
        ),
    ],
)
def test_an_unreadable_bank_is_a_one_line_error(
    graded: Path, tmp_path: Path, capsys: Capture, content: str, said: str
) -> None:
    (tmp_path / "new.jsonl").write_text(content)
    assert run(["bank", "diff", str(bank(graded)), str(tmp_path / "new.jsonl"), str(graded)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_bank_without_the_importance_that_a_measure_needs_is_reported(
    track: Path, tmp_path: Path, capsys: Capture
) -> None:
    def call_vital(rows: Rows) -> None:
        for row in rows:
            row["questions"][0]["importance"] = "vital"

    old = variant(track, tmp_path / "old.jsonl", lambda rows: None)
    shutil.copy(variant(track, tmp_path / "vital.jsonl", call_vital), bank(track))
    config = track / CONFIG_NAME
    for weights in ("importance", "vital"):
        name = f"Cover(rel=4,weights='{weights}')@8"
        config.write_text(f'[scores]\nmeasures = ["{name}"]\n')
        # Without a vital item the measure is 0; without any importance there are no weights.
        needed = weights == "importance"
        assert run(["bank", "diff", str(old), str(bank(track)), str(track)]) == (2 if needed else 0)
        said = capsys.readouterr().err
        if needed:
            assert said.startswith(f"trecexam: {old}: {name} needs")
        else:
            assert f"OLD: no item of the bank is vital, so all runs have 0 in {name}" in said
    found = difference(track, old, bank(track), ["Cover(rel=4)@8"])
    assert {item.change for item in found.items} == {"importance"}


A, B, C = (Item("q1", f"q1/{n}", f"{n}?") for n in "abc")


def changes(old: list[Item], new: list[Item]) -> list[tuple[str, str]]:
    found = bank_changes(Bank.from_items(old), Bank.from_items(new))
    return [(row.item_id, row.change) for row in found]


def test_each_kind_of_item_difference_has_a_name() -> None:
    retired = B._replace(retired=True)
    assert changes([A, B], [A]) == [("q1/b", "removed")]
    assert changes([A], [A, B]) == [("q1/b", "added")]
    assert changes([A, B], [A, B._replace(text="other?")]) == [("q1/b", "edited")]
    assert changes([A, B], [A, B._replace(gold_answers=("x",))]) == [("q1/b", "edited")]
    assert changes([A, B], [A, retired]) == [("q1/b", "retired")]
    assert changes([A, retired], [A, B]) == [("q1/b", "un-retired")]
    assert changes([A, B], [A, B._replace(importance="vital")]) == [("q1/b", "importance")]
    assert changes([A, B, C], [C, A, B]) == []


ITEMS = st.lists(
    st.builds(
        lambda q, i, text, retired, importance: Item(
            q, f"{q}/{i}", text, retired=retired, importance=importance
        ),
        st.sampled_from(["q1", "q2"]),
        st.integers(0, 5),
        st.sampled_from("abcd"),
        st.booleans(),
        st.sampled_from(["", "vital"]),
    ),
    unique_by=lambda item: item.item_id,
    max_size=8,
)


@given(ITEMS, ITEMS)
def test_applying_the_changes_turns_one_bank_into_the_other(old: list[Item], new: list[Item]) -> None:
    before, after = Bank.from_items(old), Bank.from_items(new)
    found = bank_changes(before, after)
    assert bank_changes(before, before) == ()

    def asked(bank: Bank) -> list[tuple[str, str, bytes, str]]:
        return sorted(
            (q, item.item_id, item_digest(item), item.importance)
            for q, items in bank.items.items()
            for item in items
        )

    turned = asked(before)
    for change in found:
        for item, do in ((change.old, turned.remove), (change.new, turned.append)):
            if item is not None and not item.retired:
                do((item.query_id, item.item_id, item_digest(item), item.importance))
    assert sorted(turned) == asked(after)
    back = {"added": "removed", "removed": "added", "retired": "un-retired", "un-retired": "retired"}
    assert sorted(back.get(row.change, row.change) for row in found) == sorted(
        row.change for row in bank_changes(after, before)
    )
