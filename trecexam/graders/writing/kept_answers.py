"""Every answer that a model gave when a bank was made, so that none is asked or paid for twice.

A file of lines of JSON that only grows. People may read it; it is no bank: what is kept are answers, not
items.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_regular
from trecexam.graders.base import Usage, identity_digest

#: Bytes of the digest of a line; characters that it adds to the line.
_CHECK = 8
_SEAL = len(', "check": ""}') + 2 * _CHECK


class Kept(NamedTuple):
    """An answer: what the model wrote, whether it was stopped before its end, and when (ISO 8601, UTC).

    `tokens_in` and `tokens_out` are as a server counted them; None where nobody did.
    """

    text: str
    cut: bool
    time: str
    tokens_in: int | None = None
    tokens_out: int | None = None


class KeptAnswers:
    """The answers of one writer on one track.

    Args:
        identity: the writer's; an answer is known by it and the prompt.

    Raises:
        TrecexamError: the file cannot be read.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path = path
        self._writer = identity_digest(identity).hex()
        self._answers: dict[str, Kept] = {}
        self.used = Usage()
        try:
            content = read_regular(path) if path.exists() else b""
        except OSError as error:
            raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
        # A kill can leave half a line, which the next one must not continue.
        self._torn = bool(content) and not content.endswith(b"\n")
        for line in content.split(b"\n"):
            self._take(line)

    def _take(self, line: bytes) -> None:
        if line != _sealed(line[:-_SEAL]):
            # Cut by a kill, or damaged: its prompt is asked again.
            return
        row = orjson.loads(line)
        if row["writer"] != self._writer:
            return
        if "used" in row:
            self.used = self.used.plus(Usage(*row["used"]))
        else:
            counted = row.get("tokens") or (None, None)
            self._answers[row["prompt_sha256"]] = Kept(row["answer"], row["cut"], row["time"], *counted)

    def get(self, prompt: str) -> Kept | None:
        """The answer to a prompt; None where there is none yet."""
        return self._answers.get(_digest(prompt))

    def add(self, answers: Iterable[tuple[str, Kept]], used: Usage) -> None:
        """Keeps answers and what they took.

        Raises:
            TrecexamError: they cannot be written.
        """
        rows: list[dict[str, Any]] = []
        for prompt, kept in answers:
            digest = _digest(prompt)
            self._answers[digest] = kept
            answer = {"prompt": prompt, "answer": kept.text, "cut": kept.cut, "time": kept.time}
            counted = (kept.tokens_in, kept.tokens_out)
            tokens = {} if counted == (None, None) else {"tokens": counted}
            rows.append({"writer": self._writer, "prompt_sha256": digest, **answer, **tokens})
        if used.requests:
            self.used = self.used.plus(used)
            rows.append({"writer": self._writer, "used": list(used)})
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


def _sealed(start: bytes) -> bytes:
    """A line of the file: an object without its closing brace, with the digest of that as its last field."""
    return start + b', "check": "' + hashlib.blake2b(start, digest_size=_CHECK).hexdigest().encode() + b'"}'


def _digest(prompt: str) -> str:
    return hashlib.sha256(prompt.encode(errors="replace")).hexdigest()
