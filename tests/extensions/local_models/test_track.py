"""Local language models on a track folder, as a user runs them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import make_small_track, printed

import trecexam
from trecexam.cli.main import run

Make = Callable[..., Path]


@pytest.fixture
def track(models: dict[str, Path], tmp_path: Path) -> Make:
    """Makes a small track with a tiny T5; settings go into [grader]."""

    def make(scores: str = "", **settings: Any) -> Path:
        root = make_small_track(tmp_path / "track", docs=6, items=2)
        configure(root, models["t5"], scores, **settings)
        return root

    return make


def configure(root: Path, model: Path, scores: str = "", **settings: Any) -> None:
    lines = {"name": "seq2seq", "model": str(model), "device": "cpu", **settings}
    grader = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
    (root / "trecexam.toml").write_text(
        f"[track]\ndepth = 4\n[report]\nwrite = false\n[grader]\n{grader}[scores]\n{scores}\n"
    )


def ratings(root: Path) -> dict[tuple[str, str], int | None]:
    with trecexam.open_track(root) as opened:
        opened.update()
        return {(row["doc_id"], row["item_id"]): row["rating"] for row in opened.grades()}


def labels(root: Path) -> set[str]:
    return {line.split()[3] for line in (root / "out" / "rubric.qrels").read_text().splitlines()}


@pytest.mark.parametrize(
    ("prompt", "best"), [("Sun", 1), ("HELM", 1), ("FagB", 1), ("Thomas", 2), ("UMBRELA", 3)]
)
def test_a_direct_prompt_grades_each_passage_once_on_its_own_scale(
    track: Make, prompt: str, best: int
) -> None:
    root = track(prompt=prompt)
    assert run(["watch", str(root), "--once"]) == 0
    with trecexam.open_track(root) as opened:
        rows = list(opened.grades())
    assert {row["item_id"] for row in rows} == {"q1", "q2", "q3"}
    assert {row["prompt"] for row in rows} == {prompt}
    assert all(0 <= row["rating"] <= best for row in rows)
    assert len({(row["doc_id"], row["item_id"]) for row in rows}) == len(rows)
    assert labels(root) <= {str(rating) for rating in range(best + 1)}


def test_free_text_is_parsed_again_when_the_parser_changes(track: Make, models: dict[str, Path]) -> None:
    root = track(decode="beam", max_new_tokens=4)
    ours = ratings(root)
    configure(root, models["t5"], decode="beam", max_new_tokens=4, compat="workbench")
    with trecexam.open_track(root) as opened:
        # Where none of the first replies could be read, the others were not asked for.
        missing = opened.grading.counts().missing
        update = opened.update()
        assert update.changed
        assert update.graded == missing < 20
        theirs = {(row["doc_id"], row["item_id"]): row["rating"] for row in opened.grades()}
    # The tiny model gives nonsense: unparsed by the paper's parser, 0 or 1 by the workbench's.
    assert ours.keys() <= theirs.keys()
    assert None in ours.values()
    assert None not in theirs.values()


def test_a_prompt_file_is_watched_and_its_parser_is_applied_to_stored_answers(
    track: Make, models: dict[str, Path]
) -> None:
    root = track(prompt="mine.toml", decode="beam", max_new_tokens=3)
    text = 'template = "{question} {context}"\n'
    (root / "mine.toml").write_text(text)
    assert set(ratings(root).values()) == {None}
    with trecexam.open_track(root) as opened:
        answers = {(row["doc_id"], row["item_id"]): row["answer"] for row in opened.grades()}
    # A random model may answer nothing, which no prompt permits.
    permitted = sorted({answer for answer in answers.values() if answer.strip()})
    chosen = "".join(f"{json.dumps(answer)} = 3\n" for answer in permitted)
    (root / "mine.toml").write_text(f"{text}[answers]\n{chosen}")
    with trecexam.open_track(root) as opened:
        missing = opened.grading.counts().missing
        assert opened.update().graded == missing < 20
    now = ratings(root)
    assert {cell: now[cell] == 3 for cell in answers} == {
        cell: answer in permitted for cell, answer in answers.items()
    }
    assert permitted
    (root / "mine.toml").write_text('template = "{question}? {context}"\n')
    with trecexam.open_track(root) as opened:
        assert opened.update().graded == len(ratings(root))


def test_a_changed_query_is_graded_again_if_the_prompt_uses_it(track: Make) -> None:
    root = track(prompt="mine.toml")
    (root / "mine.toml").write_text('template = "{query} {question} {context}"\n')
    before = len(ratings(root))
    queries = (root / "queries.tsv").read_text()
    (root / "queries.tsv").write_text(queries.replace("query number q2", "another query"))
    bank = (root / "bank.questions.jsonl").read_text()
    (root / "bank.questions.jsonl").write_text(bank.replace("query number q2", "another query"))
    with trecexam.open_track(root) as opened:
        assert opened.update().graded == before // 3
    (root / "queries.tsv").write_text(queries)
    with trecexam.open_track(root) as opened:
        assert opened.update().graded == 0


def test_an_item_that_cannot_be_graded_is_reported_once_and_the_rest_is_graded(
    track: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    root = track()
    bank = (root / "bank.questions.jsonl").read_text()
    long = " ".join(f"word{number}" for number in range(600))
    (root / "bank.questions.jsonl").write_text(bank.replace("question 1 of q2?", long))
    err = printed(capsys, "watch", root, "--once", status=1).err
    assert err.count("leaves no room for a passage in the 512 tokens of a prompt: shorten it") == 1
    rejected = (root / "out" / "rejected.tsv").read_text().splitlines()
    assert len(rejected) == 2
    assert rejected[1].startswith("bank.questions.jsonl\t\titem 'q2/1' leaves no room")
    assert "(6 passages not graded on it)" in rejected[1]
    (root / "bank.questions.jsonl").write_text(bank)
    assert run(["watch", str(root), "--once"]) == 0
    assert len((root / "out" / "rejected.tsv").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "causal", "model": None}, "the `causal` grader has no model: set `model` in \\[grader\\]"),
        ({"model": "/nowhere"}, "no such folder|nowhere"),
        ({"prompt": "Nope"}, "no prompt 'Nope'"),
        ({"device": "tpu9"}, "`device` 'tpu9' in \\[grader\\] cannot be used"),
    ],
)
def test_invalid_settings_are_a_one_line_error(
    track: Make, settings: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = track()
    config = (root / "trecexam.toml").read_text()
    for key, value in settings.items():
        kept = "".join(line for line in config.splitlines(True) if not line.startswith(f"{key} ="))
        line = "" if value is None else f"{key} = {json.dumps(value)}\n"
        config = kept.replace("[grader]\n", f"[grader]\n{line}")
    (root / "trecexam.toml").write_text(config)
    err = printed(capsys, "watch", root, "--once", status=2).err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    assert re.search(message, err)


def broken(models: dict[str, Path], folder: Path, kind: str) -> Path:
    """A copy of the tiny T5 that is damaged in one way."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(models["t5"], folder)
    weights = folder / "model.safetensors"
    if kind == "cut":
        weights.write_bytes(weights.read_bytes()[:3000])
    elif kind == "no tokenizer":
        for path in folder.glob("tokenizer*"):
            path.unlink()
    elif kind == "no weights":
        weights.unlink()
    elif kind == "pickled":
        weights.rename(folder / "pytorch_model.bin")
    else:
        tensors = load_file(weights)
        name = "encoder.block.1.layer.0.SelfAttention.q.weight"
        if kind == "nan":
            tensors[name] = tensors[name] * float("nan")
        else:
            del tensors[name]
        save_file(tensors, weights, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("cut", "the model cannot be loaded"),
        ("no tokenizer", "the folder has no tokenizer"),
        ("no weights", "no *.safetensors file"),
        ("pickled", "pickled weights are not loaded"),
        ("nan", "are not numbers (NaN)"),
        ("lacking", "its files lack 1 weights"),
    ],
)
@pytest.mark.parametrize("decode", ["choices", "beam"])
def test_a_damaged_model_is_a_one_line_error_and_grades_nothing(
    track: Make,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    message: str,
    decode: str,
) -> None:
    root = track()
    configure(root, broken(models, tmp_path / "model", kind), decode=decode)
    err = printed(capsys, "watch", root, "--once", status=2).err.strip()
    assert message in err
    assert str(tmp_path / "model") in err
    assert "Traceback" not in err
