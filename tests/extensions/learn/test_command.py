"""`trecexam learn` and `track.learn.labels`: outputs, errors and messages."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from learnable import WordEncoder, make_learnable
from support import labels_of, printed, tsv_rows

import trecexam
from trecexam.cli.main import run


def learned(root: Path) -> list[dict[str, str]]:
    return tsv_rows(root / "out" / "learned.tsv")


def error_output(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> str:
    return printed(capsys, "learn", *arguments, status=status).err


_FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(e[-+]?\d+)?(?![\w.])")


def near(one: str, other: str, tolerance: float = 0.011) -> bool:
    """Return True for texts with the same words, and numbers with a point that differ by no more.

    The default is one unit of the second digit: learned gains are printed with two.
    """
    numbers = zip(_FLOAT.finditer(one), _FLOAT.finditer(other), strict=False)
    return _FLOAT.sub("N", one) == _FLOAT.sub("N", other) and all(
        abs(float(a[0]) - float(b[0])) <= tolerance for a, b in numbers
    )


def edit_qrels(root: Path, change: Callable[[list[str]], str | None]) -> None:
    rows = [line.split() for line in (root / "qrels.txt").read_text().splitlines()]
    changed = [(row, change(row)) for row in rows]
    (root / "qrels.txt").write_text(
        "".join(f"{' '.join(row[:3])} {label}\n" for row, label in changed if label is not None)
    )


def test_each_pooled_passage_has_a_gain_and_labels_of_people_are_kept(learnable: Path) -> None:
    assert run(["learn", str(learnable)]) == 0
    rows, people = learned(learnable), labels_of(learnable / "qrels.txt")
    pooled = set()
    for path in (learnable / "runs").iterdir():
        pooled |= {(line.split()[0], line.split()[2]) for line in path.read_text().splitlines()}
    assert {(row["query_id"], row["doc_id"]) for row in rows} == pooled
    for row in rows:
        label = people.get((row["query_id"], row["doc_id"]))
        assert row["judged"] == ("no" if label is None else "yes")
        if label is None:
            assert 0 <= float(row["gain"]) <= 2
            assert float(row["sd"]) > 0
            assert row["label"] in "012"
        else:
            assert (float(row["gain"]), float(row["sd"]), int(row["label"])) == (label, 0, label)
    new = [f"{r['query_id']} 0 {r['doc_id']} {r['label']}\n" for r in rows if r["judged"] == "no"]
    qrels = (learnable / "out" / "learned.qrels").read_text()
    assert qrels == (learnable / "qrels.txt").read_text() + "".join(new)


def test_learned_labels_agree_with_hidden_judgments(learnable: Path) -> None:
    full = labels_of(learnable / "qrels.txt")
    edit_qrels(learnable, lambda row: None if row[2].endswith(("4", "5")) else row[3])
    assert run(["learn", str(learnable)]) == 0
    hidden = [
        row for row in learned(learnable) if row["doc_id"].endswith(("4", "5")) and row["judged"] == "no"
    ]
    pairs = [(float(row["gain"]), full[row["query_id"], row["doc_id"]]) for row in hidden]
    mean = {high: [gain for gain, label in pairs if (label == 2) == high] for high in (True, False)}
    assert sum(mean[True]) / len(mean[True]) > sum(mean[False]) / len(mean[False]) + 0.5


def test_learning_again_gives_the_same_labels_and_encodes_new_passages_alone(
    learnable: Path, encoder: WordEncoder
) -> None:
    assert run(["learn", str(learnable)]) == 0
    names = ("learned.tsv", "learned.qrels", "learned-leaderboard.tsv")
    before = [(learnable / "out" / name).read_text() for name in names]
    assert len(encoder.encoded) == len(set(encoder.encoded))
    encoder.encoded.clear()
    assert run(["learn", str(learnable)]) == 0
    assert all(
        near((learnable / "out" / name).read_text(), text) for name, text in zip(names, before, strict=True)
    )
    assert encoder.encoded == []
    with (learnable / "passages.jsonl").open("a") as passages:
        passages.write(json.dumps({"docid": "new", "text": "q0a q0b q0c new"}) + "\n")
    (learnable / "runs" / "e.run").write_text("q0 Q0 new 1 9 e\n")
    assert run(["learn", str(learnable)]) == 0
    assert encoder.encoded == ["q0a q0b q0c new"]


def test_negative_labels_are_not_judgments_and_their_lines_stay(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_qrels(learnable, lambda row: "-1" if row[2] == "q1-d01" else row[3])
    assert "1 line with the label -1: pooled, not judged" in error_output(capsys, learnable)
    (row,) = (row for row in learned(learnable) if row["doc_id"] == "q1-d01")
    assert row["judged"] == "no"
    assert (learnable / "out" / "learned.qrels").read_text().count(" q1-d01 ") == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda root: edit_qrels(root, lambda row: "1"), "nothing to learn: all "),
        (lambda root: edit_qrels(root, lambda row: "-1"), "nothing to learn: no judgments"),
        (
            lambda root: edit_qrels(root, lambda row: "1" if row[3] == "2" else "-1"),
            "judgments are 1; qrels.txt: ",
        ),
        (lambda root: (root / "qrels.txt").unlink(), "no official judgments: put qrels.txt here"),
        (lambda root: shutil.rmtree(root / "runs"), "the pool is empty; drop runs into the track"),
    ],
    ids=["one label", "pooled alone", "one label besides", "no judgments", "no runs"],
)
def test_a_track_that_cannot_be_learned_from_is_refused_with_the_reason(
    learnable: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], why: str
) -> None:
    change(learnable)
    assert why in error_output(capsys, learnable, status=2)
    assert not (learnable / "out" / "learned.tsv").exists()


def test_passages_without_text_are_reported_and_learned_from_votes(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (learnable / "passages.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"q0-d01"' not in line and '"q0-d00"' not in line]
    (learnable / "passages.jsonl").write_text("".join(kept))
    error = error_output(capsys, learnable)
    assert (
        "2 pooled passages ('q0-d00', 'q0-d01') without a text: labels come from the votes of the runs"
        in error
    )
    rows = {row["doc_id"]: row for row in learned(learnable)}
    assert (rows["q0-d01"]["judged"], rows["q0-d00"]["judged"]) == ("yes", "no")
    assert 0 <= float(rows["q0-d00"]["gain"]) <= 2
    assert float(rows["q0-d00"]["sd"]) > 0
    (learnable / "passages.jsonl").write_text("")
    missing = f"pooled passages ('q0-d00', 'q0-d01' and {len(rows) - 2} more) without a text"
    assert missing in error_output(capsys, learnable)
    assert {row["label"] for row in learned(learnable)} == set("012")


def test_labels_of_a_model_are_not_learned_from(learnable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["learn", str(learnable)]) == 0
    config = (learnable / "trecexam.toml").read_text()
    (learnable / "trecexam.toml").write_text(
        config.replace("[track]", '[track]\nqrels = "out/learned.qrels"')
    )
    assert "these judgments include labels from a model" in error_output(capsys, learnable, status=2)


def test_another_track_must_differ_have_labels_of_people_and_the_same_scale(
    learnable: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is this track itself" in error_output(
        capsys, learnable, "--from", learnable / "runs" / "..", status=2
    )
    other = make_learnable(tmp_path / "other")
    (other / "qrels.txt.sources.tsv").write_text("")
    assert "these judgments include labels from a model" in error_output(
        capsys, learnable, "--from", other, status=2
    )
    other = make_learnable(tmp_path / "binary", labels=2)
    error = error_output(capsys, learnable, "--from", other, status=2)
    assert "the highest judgment here is 2, and 1 in" in error


def test_an_update_learns_if_enabled_in_the_settings(learnable: Path) -> None:
    with (learnable / "trecexam.toml").open("a") as config:
        config.write('\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    row = {"query_id": "q0", "doc_id": "q0-d01", "item_id": "q0/1", "rating": 3}
    (learnable / "grades.jsonl").write_text(json.dumps(row) + "\n")
    assert run(["watch", str(learnable), "--once"]) in (0, 1)
    assert not (learnable / "out" / "learned.tsv").exists()
    with (learnable / "trecexam.toml").open("a") as config:
        config.write("\n[learn]\nupdate = true\n")
    with trecexam.open_track(learnable) as track:
        assert "learned.tsv" in {path.name for path in track.update().written}
        learned_by = json.loads((learnable / "out" / "learned.json").read_text())
        assert learned_by["judgments"]["source"] == "qrels.txt"
        assert not track.update().changed
        edit_qrels(learnable, lambda row: "1")
        (note,) = (line for line in track.update().notes if "learn" in line)
        assert "nothing learned; out/learned.tsv is unchanged" in note
        assert "judgments are 1" in note


# Incomplete or minimal tracks, and tracks without a bank: each command works or gives a one-line error.


Change = Callable[[Path], object]

#: The statuses below belong to these commands, in this order.
COMMANDS = (
    ["learn"],
    ["leaderboard", "--labels", "learned"],
    ["fill", "--by", "learned", "-o", "FILLED"],
)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def labels(change: Callable[[str, str], object]) -> Change:
    """Replaces each label by `change(passage, label)`; None removes the line."""

    def changed(root: Path) -> None:
        rows = [line.split() for line in lines(root / "qrels.txt")]
        new = [(row, change(row[2], row[3])) for row in rows]
        (root / "qrels.txt").write_text(
            "".join(f"{row[0]} 0 {row[2]} {label}\n" for row, label in new if label is not None)
        )

    return changed


def all_judged(root: Path) -> None:
    pooled = {tuple(line.split()[0:3:2]) for path in (root / "runs").iterdir() for line in lines(path)}
    (root / "qrels.txt").write_text(
        "".join(f"{q} 0 {doc} {int(doc[-2:]) % 3}\n" for q, doc in sorted(pooled))
    )


def one_query(root: Path) -> None:
    for path in (root / "queries.tsv", root / "qrels.txt", *(root / "runs").iterdir()):
        path.write_text("".join(line for line in lines(path) if line.startswith("q0")))


def one_run(root: Path) -> None:
    for name in "bcd":
        (root / "runs" / f"{name}.run").unlink()


def without(name: str, *parts: str) -> Change:
    """Removes the lines that contain one of these; without words, all lines."""

    def changed(root: Path) -> None:
        kept = [line for line in lines(root / name) if parts and not any(part in line for part in parts)]
        (root / name).write_text("".join(kept))

    return changed


def one_passage(root: Path) -> None:
    for path in (root / "runs").iterdir():
        path.write_text(
            "".join(line for line in lines(path) if not line.startswith("q0") or "q0-d01" in line)
        )


FINE = [0] * 3
NOTHING_TO_LEARN = [2] * 3
ODD: dict[str, tuple[Change, list[int]]] = {
    "one query": (one_query, FINE),
    "one judgment": (labels(lambda doc, label: 1 if doc == "q0-d01" else None), NOTHING_TO_LEARN),
    "negative labels alone": (labels(lambda doc, label: -1), NOTHING_TO_LEARN),
    "all of the pool judged": (all_judged, FINE),
    "one run": (one_run, FINE),
    "a run without a query": (without("runs/a.run", "q0 "), FINE),
    "no passages with a text": (without("passages.jsonl"), FINE),
    "a query with one passage": (one_passage, FINE),
}
#: The others run with `--all`: each has three commands.
AT_EVERY_COMMIT = ("one query", "one judgment", "a run without a query")


@pytest.mark.parametrize(
    "odd",
    [pytest.param(odd, marks=() if odd in AT_EVERY_COMMIT else pytest.mark.slow) for odd in ODD],
)
def test_an_incomplete_track_is_processed_or_rejected_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    root = make_learnable(tmp_path / "track", queries=4, docs=10)
    (root / "bank.questions.jsonl").unlink()
    change, expected = ODD[odd]
    change(root)
    found = []
    for command in COMMANDS:
        arguments = [part.replace("FILLED", str(tmp_path / "filled.qrels")) for part in command]
        capsys.readouterr()
        found.append(run([arguments[0], str(root), *arguments[1:]]))
        shown = capsys.readouterr()
        if found[-1]:
            assert shown.out == ""
            assert len(shown.err.splitlines()) == 1
        assert "nan" not in shown.out.lower().split()
    assert found == expected


# Tracks with runs, texts and judgments but no test bank.


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    root = make_learnable(tmp_path / "inputs", queries=6)
    (root / "bank.questions.jsonl").unlink()
    return root


@pytest.fixture
def bankless(inputs: Path, tmp_path: Path) -> Path:
    """A user who starts with runs and qrels."""
    root = tmp_path / "track"
    given = ["queries.tsv", "passages.jsonl", "qrels.txt"]
    files = [part for name in given for part in (f"--{name.split('.')[0]}", str(inputs / name))]
    assert run(["init", str(root), *files, "--runs", str(inputs / "runs")]) == 0
    return root


def test_judgments_with_other_ids_are_reported_with_both_ids(
    bankless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (bankless / "qrels.txt").read_text().splitlines()
    (bankless / "qrels.txt").write_text("".join(line.replace("0 q", "0 zzq", 1) + "\n" for line in lines))
    judged = f"'zzq0-d01', 'zzq0-d02' and {len(lines) - 2} more"
    examples = f"qrels.txt: no passage that it judges ({judged}) is in the pool ('q0-d00', "
    for words in (["learn"], ["fill", "--dry-run"]):
        capsys.readouterr()
        assert run([words[0], str(bankless), *words[1:]]) == 2, words
        assert examples in capsys.readouterr().err, words


def run_command(
    capsys: pytest.CaptureFixture[str], root: Path, *arguments: str, status: int = 0
) -> tuple[str, str]:
    return printed(capsys, arguments[0], root, *arguments[1:], status=status)


def test_holes_are_filled_by_learned_labels_without_a_grader(
    bankless: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = bankless.parent / "filled.qrels"
    _, err = run_command(capsys, bankless, "fill", "-o", str(output), status=2)
    assert "no test bank" in err
    assert "`--by learned` fills without one" in err
    assert not output.exists()
    _, err = run_command(capsys, bankless, "fill", "--by", "grader", "-o", str(output), status=2)
    assert "no test bank" in err
    _, err = run_command(capsys, bankless, "fill", "--by", "learned", "-o", str(output))
    assert "0 cells to grade" in err
    official = (bankless / "qrels.txt").read_text()
    filled = output.read_text()
    assert filled.startswith(official)
    assert len(filled.splitlines()) > len(official.splitlines())
    # Also by the result of a cross-validation.
    run_command(capsys, bankless, "learn")
    output.unlink()
    _, err = run_command(capsys, bankless, "fill", "-o", str(output))
    assert "filled by learned labels; cross-validation here" in err
    assert output.read_text() == filled


@pytest.mark.slow
def test_learned_labels_do_not_depend_on_the_order_of_lines_and_files(learnable: Path) -> None:
    assert run(["learn", str(learnable)]) == 0
    names = ("learned.tsv", "learned-leaderboard.tsv")
    before = [sorted((learnable / "out" / name).read_text().splitlines()) for name in names]
    shutil.rmtree(learnable / "out")
    shutil.rmtree(learnable / ".trecexam")
    for name in ("qrels.txt", "passages.jsonl", "queries.tsv", "bank.questions.jsonl"):
        lines = (learnable / name).read_text().splitlines(keepends=True)
        (learnable / name).write_text("".join(lines[::-1]))
    for path in sorted((learnable / "runs").iterdir(), reverse=True):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[::-1]))
        path.rename(path.with_name(f"{9 - ord(path.stem) % 10}.run"))
    assert run(["learn", str(learnable)]) == 0
    after = [sorted((learnable / "out" / name).read_text().splitlines()) for name in names]
    assert all(near("\n".join(one), "\n".join(other)) for one, other in zip(before, after, strict=True))


def test_few_judged_passages_a_query_are_used_with_a_warning(
    learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = "with three, tau of the learned leaderboard with that of all judgments was .57 to .90"
    assert few not in error_output(capsys, learnable)
    edit_qrels(learnable, lambda row: row[3] if row[0] == "q0" or row[2].endswith(("1", "2")) else None)
    error = error_output(capsys, learnable)
    assert f"3 judged passages a query in the median: {few}" in error
    assert run(["leaderboard", str(learnable), "--labels", "learned"]) == 0
    assert few in capsys.readouterr().err
    edit_qrels(learnable, lambda row: row[3] if row[0] == "q0" else None)
    assert "4 of 5 queries ('q1', 'q2', 'q3' and 1 more) have no judgment" in error_output(capsys, learnable)
    assert {row["query_id"] for row in learned(learnable)} == {f"q{at}" for at in range(5)}
