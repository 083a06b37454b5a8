"""Every answer that a writer gave, so each prompt is sent once.

A file of lines of JSON that only grows. People may read it; it is no bank: what is kept are answers, not
items.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_regular
from trecexam.graders.base import identity_digest
from trecexam.graders.meter import Usage
from trecexam.graders.writing.base import Writer

#: Bytes of the digest of a line; characters that it adds to the line.
_CHECK = 8
_SEAL = len(', "check": ""}') + 2 * _CHECK


class Kept(NamedTuple):
    """An answer: what the model wrote, and when (ISO 8601, UTC).

    `tokens_in` and `tokens_out` are as a server counted them; None where nobody did. Where the model
    `refused`, the text is what follows "the model ...". `cut_at` is the most tokens that stopped it; None
    where nothing did.
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
        self._answers: dict[tuple[str, str], Kept] = {}
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
            self._answers.pop((row["writer"], row["prompt_sha256"]), None)
        elif {"used", "purse"} <= row.keys():
            self._count(row["writer"], row["purse"], Usage(*row["used"]))
        elif {"answer", "status"} <= row.keys():
            tokens_in, tokens_out = row.get("tokens") or (None, None)
            refused = row["status"] == "refused"
            stored = Kept(row["answer"], row["time"], tokens_in, tokens_out, refused, row.get("cut_at"))
            self._answers[row["writer"], row["prompt_sha256"]] = stored

    def _count(self, writer: str, purse: str, used: Usage) -> None:
        self._used[writer, purse] = self._used.get((writer, purse), Usage()).plus(used)

    def get(self, writer: str, prompt: str) -> Kept | None:
        """Return the answer of a writer to a prompt; None where there is none yet."""
        return self._answers.get((writer, _digest(prompt)))

    def used(self, writer: str | None = None) -> Usage:
        """Return what a writer ever used; None for all writers."""
        return _sum(used for (who, _), used in self._used.items() if writer in (None, who))

    def spent(self, purse: str, without: Collection[str] = ()) -> Usage:
        """Return what was paid from a purse, but for these writers."""
        return _sum(used for (who, paid), used in self._used.items() if paid == purse and who not in without)

    def add(
        self,
        writer: str,
        answers: Iterable[tuple[str, Kept]],
        used: Usage,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Keep answers, what they took, and what a model in this process ran on."""
        rows: list[dict[str, Any]] = []
        for prompt, stored in answers:
            digest = _digest(prompt)
            self._answers[writer, digest] = stored
            counted = (stored.tokens_in, stored.tokens_out)
            row = {
                "writer": writer,
                "prompt_sha256": digest,
                "prompt": prompt,
                "answer": stored.text,
                "status": "refused" if stored.refused else "cut" if stored.cut else "ok",
                "time": stored.time,
                "tokens": None if counted == (None, None) else counted,
                "cut_at": stored.cut_at,
                "environment": None if environment is None else dict(environment),
            }
            rows.append({key: value for key, value in row.items() if value is not None})
        if used.requests:
            self._count(writer, self.purse, used)
            rows.append({"writer": writer, "purse": self.purse, "used": list(used)})
        self._append(rows)

    def forget(self, writer: str, prompts: Collection[str], *, in_file: bool) -> None:
        """Drop answers, so that their prompts are sent again; `in_file`: by other processes, too."""
        for prompt in prompts:
            self._answers.pop((writer, _digest(prompt)), None)
        if in_file:
            row = {"writer": writer, "status": "forgotten"}
            self._append([{**row, "prompt_sha256": _digest(prompt)} for prompt in prompts])

    def _append(self, rows: Collection[Mapping[str, Any]]) -> None:
        if not rows:
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

    def get(self, prompt: str) -> Kept | None:
        """Return the answer to a prompt; None where there is none, or one cut off at fewer tokens."""
        stored = self.file.get(self.digest, prompt)
        if stored is not None and stored.cut_at is not None and stored.cut_at < self.writer.new_tokens:
            return None
        return stored

    def add(self, answers: Iterable[tuple[str, Kept]], used: Usage) -> None:
        """Keep answers and what they took."""
        self.file.add(self.digest, answers, used, self.writer.environment)

    def forget(self, prompts: Collection[str], *, in_file: bool) -> None:
        """Drop answers, see `AnswerFile.forget`."""
        self.file.forget(self.digest, prompts, in_file=in_file)


def _sum(usages: Iterable[Usage]) -> Usage:
    return reduce(Usage.plus, usages, Usage())


def _sealed(start: bytes) -> bytes:
    """Return a line: an object without its closing brace, with the digest of that as its last field."""
    return start + b', "check": "' + hashlib.blake2b(start, digest_size=_CHECK).hexdigest().encode() + b'"}'


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()
