"""Every answer that a writer gave, so each prompt is sent once.

A file of lines of JSON that only grows. People may read it; it is no bank: what is kept are answers, not
items.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_regular
from trecexam.graders.base import identity_digest
from trecexam.graders.meter import Spent, Usage
from trecexam.graders.writing.base import Writer

#: Bytes of the digest of a line; characters that it adds to the line.
_CHECK = 8
_SEAL = len(', "check": ""}') + 2 * _CHECK
#: Returns what graders used of a purse; it is told what tokens cost where no grader knows.
SpentByGraders = Callable[[str, Callable[[Usage], float | None]], Spent]


class Kept(NamedTuple):
    """An answer: what the model wrote, and when (ISO 8601, UTC).

    `tokens_in` and `tokens_out` are as a server counted them; None where nobody did. `refused`: the text is
    a refusal. `cut_at` is the most tokens that stopped it; None where nothing did.
    """

    text: str
    time: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    refused: bool = False
    cut_at: int | None = None

    @property
    def cut(self) -> bool:
        """True where the model was stopped before its end."""
        return self.cut_at is not None

    @property
    def refusal(self) -> str:
        """The words of a refusal, as follow "the model ..."."""
        return f"refused: {self.text[:200]}"


class AnswerFile:
    """The answers of all writers of a track.

    Args:
        purse: whose budget pays for the current prompts: a section of trecexam.toml.

    Raises:
        TrecexamError: the file cannot be read.
    """

    def __init__(self, path: Path, purse: str = "generator") -> None:
        self.path = path
        self.purse = purse
        self.answers: dict[tuple[str, str], Kept] = {}
        #: (writer, purse) -> what was used.
        self._used: dict[tuple[str, str], Usage] = {}
        try:
            content = read_regular(path) if path.exists() else b""
        except OSError as error:
            raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
        # A kill can leave half a line, which the next one must not continue.
        self._torn = bool(content) and not content.endswith(b"\n")
        for line in content.split(b"\n"):
            # A line that was cut by a kill, or is damaged, does not count: its prompt is sent again.
            if line == _sealed(line[:-_SEAL]):
                self._take(orjson.loads(line))

    def _take(self, row: Mapping[str, Any]) -> None:
        if row.get("status") == "forgotten":
            self.answers.pop((row["writer"], row["prompt_sha256"]), None)
        elif {"used", "purse"} <= row.keys():
            key = row["writer"], row["purse"]
            self._used[key] = self._used.get(key, Usage()).plus(Usage(*row["used"]))
        elif {"answer", "status"} <= row.keys():
            tokens_in, tokens_out = row.get("tokens") or (None, None)
            refused = row["status"] == "refused"
            stored = Kept(row["answer"], row["time"], tokens_in, tokens_out, refused, row.get("cut_at"))
            self.answers[row["writer"], row["prompt_sha256"]] = stored

    def used(self, writers: Collection[str] | None = None) -> Usage:
        """Return what writers ever used; None for all writers."""
        return _sum(used for (who, _), used in self._used.items() if writers is None or who in writers)

    def spent(self, purse: str, without: Collection[str] = ()) -> Usage:
        """Return what was paid from a purse, but for these writers."""
        return _sum(used for (who, paid), used in self._used.items() if paid == purse and who not in without)

    def append(self, rows: Collection[Mapping[str, Any]], *, in_file: bool = True) -> None:
        """Add rows, and take what they say; `in_file` False: for this process alone."""
        for row in rows:
            self._take(row)
        if not rows or not in_file:
            return
        lines = b"".join(_sealed(json.dumps(row, ensure_ascii=False).encode()[:-1]) + b"\n" for row in rows)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(b"\n" * self._torn + lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise TrecexamError(
                f"cannot be written: {error.strerror}; what was answered until now is kept", path=self.path
            ) from None
        self._torn = False


class KeepingWriter:
    """A writer with the file that keeps its answers, in which each is known by writer and prompt."""

    def __init__(self, writer: Writer, file: AnswerFile) -> None:
        self.writer = writer
        self.file = file
        self.digest = identity_digest(writer.identity).hex()
        self._counted = Usage()

    def begin(self, sharing: Collection[str], spent_by_graders: SpentByGraders) -> None:
        """Have the writer's meter count from here; `sharing` are all writers of the same work."""
        meter, file = self.writer.meter, self.file
        if meter is not None:
            others = meter.spent(file.spent(file.purse, sharing))
            meter.begin(file.used(sharing), others.plus(spent_by_graders(file.purse, meter.cost)))
            self._counted = Usage()

    def get(self, prompt: str) -> Kept | None:
        """Return the answer to a prompt; None where there is none, or one cut off at fewer tokens."""
        stored = self.file.answers.get((self.digest, _digest(prompt)))
        if stored is not None and stored.cut_at is not None and stored.cut_at < self.writer.new_tokens:
            return None
        return stored

    def add(self, answers: Iterable[tuple[str, Kept]]) -> None:
        """Keep answers, what was used since the last ones, and what a model in this process ran on."""
        environment, meter = self.writer.environment, self.writer.meter
        rows: list[dict[str, Any]] = []
        for prompt, stored in answers:
            counted = (stored.tokens_in, stored.tokens_out)
            row = {
                "writer": self.digest,
                "prompt_sha256": _digest(prompt),
                "prompt": prompt,
                "answer": stored.text,
                "status": "refused" if stored.refused else "cut" if stored.cut else "ok",
                "time": stored.time,
                "tokens": None if counted == (None, None) else counted,
                "cut_at": stored.cut_at,
                "environment": None if environment is None else dict(environment),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
        if meter is not None and meter.used != self._counted:
            used, self._counted = meter.used.less(self._counted), meter.used
            rows.append({"writer": self.digest, "purse": self.file.purse, "used": list(used)})
        self.file.append(rows)

    def forget(self, prompts: Collection[str], *, in_file: bool) -> None:
        """Drop answers, so that their prompts are sent again; `in_file`: by other processes, too."""
        row = {"writer": self.digest, "status": "forgotten"}
        self.file.append([{**row, "prompt_sha256": _digest(prompt)} for prompt in prompts], in_file=in_file)


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, Usage())


def _sealed(start: bytes) -> bytes:
    """Return a line: an object without its closing brace, with the digest of that as its last field."""
    return start + b', "check": "' + hashlib.blake2b(start, digest_size=_CHECK).hexdigest().encode() + b'"}'


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()
