"""Neutral names in a blind copy, for runs, passages, people and files. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from trecexam.extensions.page.urls import name_of, segment

_WORD = re.compile(r"\S+")
_PIECE = re.compile(r"[^\W_]+|[\W_]")


class Names:
    """Names in the copy; unchanged unless it is blind."""

    def alone(self, text: str) -> str:
        """The replacement for a text that may be a name."""
        return text

    def in_text(self, text: str) -> str:
        """A text with the names in it replaced."""
        return text

    def in_address(self, address: str) -> str:
        """The address of a page, with the name of a run or passage in it replaced."""
        return address

    def in_table(self, content: bytes, ending: str) -> bytes:
        """A table, as CSV or JSON, with the names in it replaced."""
        return content


class NeutralNames(Names):
    """Neutral names.

    Names of one or two digits are replaced only where they stand alone, as they are in all texts.

    Args:
        runs, people, files: name -> neutral name.
        passage: a document's id -> its neutral name.
        doc_ids: of all documents.
    """

    def __init__(
        self,
        runs: Mapping[str, str],
        people: Mapping[str, str],
        files: Mapping[str, str],
        passage: Callable[[str], str],
        doc_ids: Collection[str],
    ) -> None:
        self._runs = runs
        self._passage = passage
        self._alone = {**{doc_id: passage(doc_id) for doc_id in doc_ids}, **files, **people, **runs}
        # Found as words, since a pattern of all ids would take long.
        self._ids = {
            doc_id: self._alone[doc_id] for doc_id in doc_ids if not re.fullmatch(r"\d{0,2}", doc_id)
        }
        pieces = [_PIECE.findall(doc_id) for doc_id in self._ids]
        self._first = {each[0] for each in pieces if each}
        self._most = max(map(len, pieces), default=0)
        named = {**files, **people, **runs}
        inside = [name for name in named if not re.fullmatch(r"\d{0,2}", name)]
        # A passage's id that has a run's name in it is longer, and comes first.
        telling = _pattern(inside, whole=False)
        ids = [doc_id for doc_id in self._alone if doc_id not in named and telling and telling.search(doc_id)]
        self._inside = _pattern([*inside, *ids])

    def alone(self, text: str) -> str:
        name = self._alone.get(text.strip())
        return self.in_text(text) if name is None else name

    def in_text(self, text: str) -> str:
        if not text.strip():
            return text
        # As in titles of pages.
        for between in (", query ", " · "):
            head, comma, rest = text.partition(between)
            if comma and head in self._alone:
                return self._alone[head] + comma + self.in_text(rest)
        text = _WORD.sub(lambda match: self._without_ids(match[0]), text)
        return self._inside.sub(lambda match: self._alone[match[0]], text) if self._inside else text

    def _without_ids(self, word: str) -> str:
        """The word with documents' ids replaced where no letter or digit is next to them."""
        if word in self._ids or word.isalnum():
            return self._ids.get(word, word)
        pieces, out, begin = _PIECE.findall(word), "", 0
        if self._first.isdisjoint(pieces):
            return word
        while begin < len(pieces):
            most = self._most if pieces[begin] in self._first else 0
            ends = range(min(begin + most, len(pieces)), begin, -1)
            end = next((end for end in ends if "".join(pieces[begin:end]) in self._ids), begin)
            out += self._ids["".join(pieces[begin:end])] if end > begin else pieces[begin]
            begin = max(end, begin + 1)
        return out

    def in_address(self, address: str) -> str:
        def neutral(match: re.Match[str]) -> str:
            name = name_of(match[2])
            named = self._runs.get(name) if match[1].endswith("/run/") else self._passage(name)
            return match[1] + segment(named or "other")

        return re.sub(r"(^(?:/grader/[^/]+)?/run/|/passage/)([^/?]+)", neutral, address)

    def in_table(self, content: bytes, ending: str) -> bytes:
        text = content.decode()
        if ending == "json":
            return (json.dumps(self._walked(json.loads(text)), ensure_ascii=False, indent=1) + "\n").encode()
        table = io.StringIO()
        rows = csv.reader(io.StringIO(text, newline=""))
        csv.writer(table).writerows([[self.alone(value) for value in row] for row in rows])
        return table.getvalue().encode()

    def _walked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.alone(value)
        if isinstance(value, list):
            return [self._walked(each) for each in value]
        return {k: self._walked(v) for k, v in value.items()} if isinstance(value, dict) else value


def _pattern(names: Iterable[str], *, whole: bool = True) -> re.Pattern[str] | None:
    ordered = sorted(set(names), key=lambda name: (-len(name), name))
    if not ordered:
        return None
    inner = "|".join(map(re.escape, ordered))
    return re.compile(rf"(?<![^\W_])(?:{inner})(?![^\W_])" if whole else inner)
