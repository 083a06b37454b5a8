"""The estimated time of a local model, in every command that runs one."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from erag_track import gold_file
from exams import question, write_exam
from ragval import answer, questions
from scripted_server import serving
from support import make_small_track, write_run
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.folder import TrackFolder
from trecexam.grades.store import GradeStore

pytest.importorskip("transformers", reason="the extra `models` is not installed")
from tiny_models import save_llama

from trecexam.graders import meter

TIMED = re.compile(
    r"^(?P<doing>\w+) would take about \d+ s: a sample took \d+\.\d s until the first (?P<what>\w+), "
    r"then \d+\.\d s for (?P<n>\d+) \w+$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("models") / "tiny", chat=False)


@pytest.fixture
def root(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A track on which each command has work for a model: a tiny model writes and judges."""
    # The samples are the same on a busy machine.
    monkeypatch.setattr(meter, "_ENOUGH", 1e9)
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
    ("words", "doing", "n"),
    [
        ("bank generate TRACK -o TRACK/bank.new.jsonl", "asking", 6),
        ("exam generate TRACK --domain heat -o TRACK/new.jsonl", "asking", 7),
        ("exam score TRACK/exam.jsonl -o TRACK/new --model MODEL --examples 0 --examples 1",
         "asking", 12),
        ("erag TRACK --gold TRACK/gold.jsonl", "asking", 3),
        ("ragval answers TRACK", "asking", 6),
    ],
)  # fmt: skip
def test_each_command_estimates_the_time_of_a_local_model_and_stores_nothing(
    root: Path, model: Path, capsys: pytest.CaptureFixture[str], words: str, doing: str, n: int
) -> None:
    before = sorted(path.name for path in root.iterdir())
    command = words.replace("TRACK", str(root)).replace("MODEL", str(model)).split()
    assert run([*command, "--estimate"]) == 0
    printed = capsys.readouterr()
    header, row = (line.split("\t") for line in printed.out.splitlines())
    assert header == ["prompts", "tokens_in", "tokens_out", "tokens_out_at_most", "cost", "cost_at_most"]
    assert row == [str(n), *[""] * 5]
    (said,) = TIMED.finditer(printed.err)
    assert (said["doing"], said["what"]) == (doing, "prompt")
    assert int(said["n"]) == (n - 5 if n > 5 else n - 1)
    assert [name for name in sorted(path.name for path in root.iterdir()) if name != ".trecexam"] == before
    kept = root / ".trecexam" / "generated.jsonl"
    assert not kept.exists() or not kept.read_bytes()
    store = TrackFolder.open(root).store_path
    assert not store.exists() or GradeStore(store, write=False).is_empty()


def test_if_the_model_cannot_run_counts_are_shown_with_the_reason(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise trecexam.TrecexamError("it is broken")

    monkeypatch.setattr("trecexam.extensions.local_models.writer.LocalWriter._write", broken)
    assert run(["bank", "generate", str(root), "--estimate"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].startswith("6\t")
    assert "no time can be measured here: it is broken" in printed.err


def test_time_is_extrapolated_from_the_last_part_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(meter.time, "monotonic", lambda: now[0])

    def work(part: object, load: float = 10.0, each: float = 0.25) -> None:
        now[0] += (load if now[0] == 0 else 0) + each * len(part)  # type: ignore[arg-type]

    # Parts of 1, 4 and 16: by then more than three seconds have passed.
    sample = meter.measured(work, iter(range(1000)), 2000, lambda _: 2)
    assert sample == (10.25 + 2000 / 2 * 0.25, 10.25, 32, 16, 4.0)
    now[0] = 0.0
    # The first part was all the work.
    assert meter.measured(work, [7], 1) == (10.25, 10.25, 1, 1, 10.25)


@pytest.mark.parametrize("words", ["watch SMALL", "erag TRACK --gold TRACK/gold.jsonl"])
def test_json_has_the_minutes_and_the_number_of_measured_cells(
    root: Path,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: str,
) -> None:
    # The clock advances by a minute per call, so the time of each part is known.
    ticks = itertools.count(0.0, 60.0)
    monkeypatch.setattr(meter, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    small = make_small_track(tmp_path / "small", queries=1, docs=3, items=2)
    (small / "trecexam.toml").write_text((root / "trecexam.toml").read_text())
    command = words.replace("TRACK", str(root)).replace("SMALL", str(small)).split()
    assert run([*command, "--estimate", "--json"]) == 0
    printed = capsys.readouterr()
    (value,) = json.loads(printed.out)
    n_cells = value.get("cells", value.get("prompts"))
    # The first part loads the model, in a minute; the last part, also a minute, gives the speed.
    assert 0 < value["measured"] < n_cells
    assert value["minutes"] == round(1 + n_cells / value["measured"], 2)
    assert "would take about" in printed.err


def test_json_for_a_server_has_no_minutes_and_implies_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "small", queries=1, docs=3, items=2)
    with serving() as server:
        lines = f'[grader]\nname = "openai"\nmodel = "tiny"\nbase_url = "{server.url}"\n'
        (root / "trecexam.toml").write_text(lines)
        for more in ("--estimate", "--once"):
            assert run(["watch", str(root), more, "--json"]) == 0
            (value,) = json.loads(capsys.readouterr().out)
            assert value["tokens_in"] > 0
            assert (value["minutes"], value["measured"]) == (None, None)
        assert server.bodies == []
