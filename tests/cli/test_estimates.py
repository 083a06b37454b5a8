"""The estimate of each command that has a local model, or a server, write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from erag_track import gold_file
from exams import question, write_exam
from ragval import answer, questions
from scripted_server import serving
from support import make_small_track, write_run
from text_files import put_rows

from trecexam.cli.main import run
from trecexam.folder import TrackFolder
from trecexam.grades.store import GradeStore

pytest.importorskip("transformers", reason="the extra `models` is not installed")
from tiny_models import save_llama


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("models") / "tiny", chat=False)


@pytest.fixture
def root(tmp_path: Path, model: Path) -> Path:
    """A track on which each command has work for a model: a tiny model writes and judges."""
    root = tmp_path / "track"
    root.mkdir()
    (root / "queries.tsv").write_text("q1\twhere does it sit\nq2\twho wrote it\nq3\twhat is it\n")
    put_rows(root / "passages.jsonl", *({"docid": f"d{n}", "text": f"Passage {n}. " * 20} for n in range(7)))
    put_rows(root / "bank.questions.jsonl", *questions())
    gold_file(root / "gold.jsonl")
    write_run(root / "runs" / "one.run", {"q1": ["d1", "d2"], "q2": ["d4"]})
    put_rows(root / "runs" / "sys.jsonl", answer("k1", 5, 4), answer("k2", 1, 2))
    write_exam(root / "exam.jsonl", [question(n, f"What moves in case {n}?") for n in range(6)])
    words = {"model": str(model), "device": "cpu", "dtype": "float32", "max_new_tokens": 2}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
    (root / "trecexam.toml").write_text(
        f'[grader]\nname = "causal"\n{lines}[generator]\nmax_new_tokens = 2\n'
    )
    return root


@pytest.mark.parametrize(
    ("words", "n"),
    [
        ("bank generate TRACK -o TRACK/bank.new.jsonl", 6),
        ("exam generate TRACK --domain heat -o TRACK/new.jsonl", 7),
        ("exam score TRACK/exam.jsonl -o TRACK/new --model MODEL --examples 0 --examples 1", 12),
        ("erag TRACK --gold TRACK/gold.jsonl", 3),
        ("ragval answers TRACK", 6),
    ],
)
def test_each_command_counts_the_prompts_of_a_local_model_and_stores_nothing(
    root: Path, model: Path, capsys: pytest.CaptureFixture[str], words: str, n: int
) -> None:
    before = sorted(path.name for path in root.iterdir())
    command = words.replace("TRACK", str(root)).replace("MODEL", str(model)).split()
    assert run([*command, "--estimate"]) == 0
    printed = capsys.readouterr()
    header, row = (line.split("\t") for line in printed.out.splitlines())
    tokens, money = ["tokens_in", "tokens_out", "tokens_out_at_most"], ["cost", "cost_at_most"]
    assert header == ["prompts", *tokens, *money, "calls", "calls_at_most"]
    assert row == [str(n), *[""] * 7]
    assert [name for name in sorted(path.name for path in root.iterdir()) if name != ".trecexam"] == before
    kept = root / ".trecexam" / "generated.jsonl"
    assert not kept.exists() or not kept.read_bytes()
    store = TrackFolder.open(root).store_path
    assert not store.exists() or GradeStore(store, write=False).is_empty()


def test_json_implies_estimate_and_sends_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = make_small_track(tmp_path / "small", queries=1, docs=3, items=2)
    with serving() as server:
        lines = f'[grader]\nname = "openai"\nmodel = "tiny"\nbase_url = "{server.url}"\n'
        (root / "trecexam.toml").write_text(lines)
        for more in ("--estimate", "--once"):
            assert run(["watch", str(root), more, "--json"]) == 0
            (value,) = json.loads(capsys.readouterr().out)
            assert value["tokens_in"] > 0
        assert server.bodies == []
