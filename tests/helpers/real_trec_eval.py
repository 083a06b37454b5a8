"""NIST's trec_eval, 9.0.8 and 10.0-rc3, built from ../shared/trec_eval, and files to test rules with."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from outside import outside

SOURCES = {9: "trec_eval-9.0.8.tar.gz", 10: "trec_eval-10.0-rc3.tar.gz"}


@dataclass(frozen=True)
class Evaluation:
    """The outcome of trec_eval: exit status (negative: a signal, None: it did not end) and printed values."""

    status: int | None
    values: dict[tuple[str, str], str]
    message: str

    @property
    def accepted(self) -> bool:
        return self.status == 0


@dataclass(frozen=True)
class TrecEval:
    version: int
    program: Path

    def evaluate(self, qrels: Path, run: Path, measures: Sequence[str], *options: str) -> Evaluation:
        """`trec_eval -q OPTIONS -m MEASURE... QRELS RUN`; values by (topic, measure) as printed."""
        asked = [part for name in measures for part in ("-m", name)]
        command = [self.program, "-q", *options, *asked, qrels, run]
        try:
            done = subprocess.run(command, capture_output=True, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            return Evaluation(None, {}, "does not end")
        lines = (line.split(b"\t") for line in done.stdout.splitlines())
        rows = (line for line in lines if len(line) == 3)
        values = {(topic.decode("latin-1"), name.decode().strip()): v.decode() for name, topic, v in rows}
        return Evaluation(done.returncode, values, done.stderr.decode("latin-1").strip())


def build(version: int) -> TrecEval:
    """The program, built once into the user's cache folder; a test is skipped if it cannot be built."""
    source = outside(f"trec_eval/{SOURCES[version]}")
    if not (shutil.which("make") and shutil.which("cc")):
        pytest.skip("there is no C compiler, or no make")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trecexam-tests"
    program = cache / f"trec_eval-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work, tarfile.open(source) as archive:
            archive.extractall(work, filter="data")
            (folder,) = Path(work).iterdir()
            subprocess.run(["make"], cwd=folder, check=True, capture_output=True)
            (folder / "trec_eval").replace(program)
    return TrecEval(version, program)


_DOCS = (b"a", b"b", b"c", b"d", b"\xc3\xa9")
_FIELDS = (
    *_DOCS, b"q1", b"q2", b"Q0", b"0", b"1", b"2.5", b"-1", b"nan", b"inf", b"#", b"#c",
    b"\xef\xbb\xbf", b"\xff", b"1e39", b"0x1p2", b"x",
)  # fmt: skip
_SCORES = (b"1", b"1.00000001", b"nan", b"x", b"1e50", b"-inf", b"0x2", b"3,5", b".5e1z", b"1e-50")
_LABELS = (b"-1", b"0", b"0", b"1", b"1", b"2", b"3", b"100", b"2.7", b"x")
_SPACES = (b"\t", b"  ", b"\x0b", b"\x0c", b"\r", b"\xc2\xa0", b"\x85", b"\x1c")
_STARTS = (b" ", b"\t", b"#", b"# ", b"\xef\xbb\xbf", b"#a\n", b"#a\n#b\n", b"# a b c\n", b"# a b c d e\n")
_ENDS = (b"\r\n", b"", b"\n\n", b"\r", b" \n", b"\x0b\n", b"\x0c", b"\n#\n", b"\n# a b c\n", b"\n#x\n#y\n")


def damaged_run(seed: int) -> bytes:
    """A run of the topics q1 and q2 with up to three faults, mostly those that people and programs make."""
    rng = random.Random(seed)
    lines = [
        [
            topic,
            b"Q0",
            doc,
            b"1",
            b"%d" % rng.randrange(9) if rng.random() < 0.8 else rng.choice(_SCORES),
            b"t",
        ]
        for topic in (b"q1", b"q2")
        for doc in rng.sample(_DOCS, rng.randint(1, len(_DOCS)))
    ]
    return _damaged(lines, rng)


def damaged_qrels(seed: int) -> bytes:
    """Qrels of the topics q1 and q2 with up to three faults."""
    rng = random.Random(seed)
    lines = [
        [topic, b"0", doc, rng.choice(_LABELS)]
        for topic in (b"q1", b"q2")
        for doc in rng.sample(_DOCS, rng.randint(1, len(_DOCS)))
    ]
    return _damaged(lines, rng)


def _damaged(lines: list[list[bytes]], rng: random.Random) -> bytes:
    starts, spaces, ends = [b""] * len(lines), [b" "] * len(lines), [b"\n"] * len(lines)
    for _ in range(rng.randint(0, 3)):
        place = rng.randrange(len(lines))
        match rng.randrange(7):
            case 0 if lines[place]:
                lines[place].pop(rng.randrange(len(lines[place])))
            case 1:
                lines[place].insert(rng.randint(0, len(lines[place])), rng.choice(_FIELDS))
            case 2 if lines[place]:
                lines[place][rng.randrange(len(lines[place]))] = rng.choice(_FIELDS)
            case 3:
                lines[place] = list(rng.choice(lines))
            case 4:
                starts[place] = rng.choice(_STARTS)
            case 5:
                spaces[place] = rng.choice(_SPACES)
            case 6:
                ends[place] = rng.choice(_ENDS)
    content = b"".join(
        start + space.join(line) + end
        for start, space, line, end in zip(starts, spaces, lines, ends, strict=True)
    )
    return content[: rng.randrange(len(content) + 1)] if rng.random() < 0.1 else content
