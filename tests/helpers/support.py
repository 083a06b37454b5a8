"""Small tracks, and a grader whose answers can be computed by hand."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import trecexam
from converters.records import Item
from trecexam.cli.main import run
from trecexam.graders import Answer, Cell, Grader

if TYPE_CHECKING:
    from trecexam.outputs.grader_update import Update

#: What the fixture `on_terminal` is.
Terminal = Callable[[], AbstractContextManager[None]]
ROOT = Path(__file__).resolve().parents[2]
#: Settings of a small track that writes a report, which takes a quarter of the time of an update.
REPORTED = "[track]\ndepth = 8\n"
QUIET = f"{REPORTED}[report]\nwrite = false\n"
#: The settings of a small track whose grades are in a file, and which writes no report.
RECORDED = f'{QUIET}[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n'


def hashed_rating(text: str, item: str) -> int:
    """0..5, the same for the same passage and item, on any machine."""
    return hashlib.md5(f"{text}\0{item}".encode()).digest()[0] % 6


class HashGrader(Grader):
    """Grades by a hash; counts its cells, and can be told to leave cells out or fail."""

    def __init__(self, batch: int = 7, version: int = 1) -> None:
        self.batch = batch
        self.version = version
        self.asked: list[Cell] = []
        self.batches = 0
        self.fail_after: int | None = None
        self.status: Callable[[Cell], str] = lambda cell: "ok"

    @property
    def identity(self) -> dict[str, Any]:
        return {"grader": "hash", "version": self.version}

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        batch: list[tuple[Cell, Answer]] = []
        for cell in cells:
            self.asked.append(cell)
            rating = hashed_rating(cell.text, cell.item.text)
            status = self.status(cell)
            batch.append((cell, Answer(rating if status == "ok" else None, status, f"says {rating}")))
            if len(batch) == self.batch:
                yield self._done(batch)
                batch = []
        if batch:
            yield self._done(batch)

    def _done(self, batch: list[tuple[Cell, Answer]]) -> list[tuple[Cell, Answer]]:
        if self.fail_after is not None and self.batches >= self.fail_after:
            raise RuntimeError("the grader broke")
        self.batches += 1
        return batch


def write_run(path: Path, ranking: dict[str, Sequence[str]], tag: str | None = None) -> Path:
    """A run file that ranks the documents in the order given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(
            f"{query_id} Q0 {doc_id} {rank} {1000 - rank} {tag or path.stem}\n"
            for query_id, doc_ids in ranking.items()
            for rank, doc_id in enumerate(doc_ids, 1)
        )
    )
    return path


def make_small_track(
    root: Path, *, config: str = "", queries: int = 3, docs: int = 12, items: int = 4
) -> Path:
    """A track with `queries` queries, 3 runs over `docs` passages each, and official judgments.

    Args:
        config: its settings; by default, it writes no report.
    """
    root.mkdir(parents=True, exist_ok=True)
    qids = [f"q{n}" for n in range(1, queries + 1)]
    (root / "queries.tsv").write_text("".join(f"{q}\tquery number {q}\n" for q in qids))
    texts = ({"docid": f"{q}-d{d:02}", "text": f"passage {d} about {q}"} for q in qids for d in range(docs))
    write_jsonl(root / "passages.jsonl", texts)
    bank: list[dict[str, Any]] = [{"query_id": q, "query_text": f"query number {q}"} for q in qids]
    for row in bank:
        asked = [(f"{row['query_id']}/{i}", f"question {i} of {row['query_id']}?") for i in range(items)]
        row["questions"] = [{"question_id": key, "question_text": text} for key, text in asked]
    write_jsonl(root / "bank.questions.jsonl", bank)
    (root / "qrels.txt").write_text(
        "".join(f"{q} 0 {q}-d{d:02} {(d * 7 + len(q)) % 4}\n" for q in qids for d in range(docs))
    )
    (root / "trecexam.toml").write_text(config or QUIET)
    for number in range(3):
        write_run(
            root / "runs" / f"run{number}.run",
            {q: [f"{q}-d{(d * (number + 1) * 5 + number) % docs:02}" for d in range(docs)] for q in qids}
            if docs % 5 and docs % 2
            else {q: [f"{q}-d{(d + number * 3) % docs:02}" for d in range(docs - 2)] for q in qids},
        )
    return root


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """A file with a row of JSON on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_jsonl(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Printed(NamedTuple):
    out: str
    err: str


def printed(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> Printed:
    """Run a command, check its exit status, and return its output."""
    capsys.readouterr()
    assert run([str(word) for word in words]) == status
    shown = Printed(*capsys.readouterr())
    assert "Traceback" not in shown.err
    return shown


def out(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> str:
    """Run a command and return its stdout."""
    return printed(capsys, *words, status=status).out


def err(capsys: pytest.CaptureFixture[str], *words: object, status: int = 2) -> str:
    """Run a command that fails and return its stderr."""
    return printed(capsys, *words, status=status).err


def update(root: Path, grader: Grader | None = None, **options: Any) -> Update:
    """The outcome of an update, by a `HashGrader` if no other grader is given."""
    with trecexam.open_track(root, grader=grader or HashGrader()) as track:
        return track.update(**options)


def contents(out: Path) -> dict[str, bytes]:
    """All files below a folder but histories, which have times."""
    paths = sorted(path for path in out.rglob("*") if path.is_file() and path.name != "history.tsv")
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def labels_of(qrels: Path) -> dict[tuple[str, str], int]:
    """(query_id, doc_id) -> label."""
    rows = (line.split() for line in qrels.read_text().splitlines())
    return {(query_id, doc_id): int(label) for query_id, _, doc_id, label in rows}


def tsv_rows(path: Path) -> list[dict[str, str]]:
    return tsv_table(path.read_text())


def tsv_table(text: str) -> list[dict[str, str]]:
    lines = io.StringIO(text, newline="")
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until it is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def ask(
    text: str,
    question: str,
    number: int = 0,
    *,
    doc_id: str = "d1",
    kind: str = "question",
    key: Sequence[str] = (),
) -> Cell:
    """A cell of query q1."""
    item = Item("q1", f"q1/{number}", question, kind, tuple(key))
    return Cell("q1", "the query", doc_id, text, item)


def all_notes(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """All notes of a reading command, one a line; stderr has the first three."""
    capsys.readouterr()
    assert run([*map(str, arguments), "--json"]) == 0
    return "".join(f"{line}\n" for line in json.loads(capsys.readouterr().out)["notes"])


def record_grades(root: Path) -> None:
    """Puts the grades that a `HashGrader` gives into grades.jsonl; nothing is written to out/."""
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.grading.grade()
        write_jsonl(root / "grades.jsonl", track.grades())


def graded_track(root: Path, **shape: int) -> Path:
    """A track that the `recorded` grader has graded, with a report; `shape` as for make_small_track."""
    record_grades(make_small_track(root, **shape))
    shutil.rmtree(root / ".trecexam")
    (root / "trecexam.toml").write_text(RECORDED)
    switch_report_on(root)
    with trecexam.open_track(root) as track:
        track.update()
    return root


def switch_report_on(root: Path) -> None:
    config = root / "trecexam.toml"
    config.write_text(config.read_text().replace("write = false", "write = true"))
