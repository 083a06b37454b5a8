"""Topics in one document: TREC's line-based SGML, XML, and JSON.

    <top>
    <num> Number: 401                        <topics>
    <title> foreign minorities, Germany        <topic number="1">
    <desc> Description:                          <query>coronavirus origin</query>
    What language ...                            <narrative>...</narrative>
    </top>                                     </topic>

In SGML a field ends where the next one begins, closed or not. The title of a topic is used, where it has
none its query, text, question or description. JSON is `{query_id: text}`, as TREC RAG 2024 has it, or a list
of objects; a list under "topics", as BioGen has it, is read as that list.

Where a JSON topic has a `problem_statement` (NeuCLIR, RAGTIME, AutoJudge: `request_id`, `title`,
`problem_statement`, `background`), the query's text is the title and then the problem statement, since the
title alone does not say the question. The background describes the user, and is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.parsers import expat

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import (
    Head,
    decode,
    first_object,
    head,
    is_list,
    iter_lines,
    json_values,
    read_document,
    read_whole,
    top_level_keys,
)
from converters.records import Query

ID_KEYS = ("query_id", "qid", "id", "_id", "request_id", "topic_id", "narrative_id")
TEXT_KEYS = ("text", "title", "query", "narrative", "problem_statement")
#: In a list, where it is clear what each object is, these may name the id and the text as well.
LIST_ID_KEYS = (*ID_KEYS, "number", "num")
LIST_TEXT_KEYS = (*TEXT_KEYS[:3], "question", "topic", "description", *TEXT_KEYS[3:])
#: Where iKAT and CAsT have the turns of a topic, and what people type in them, rewritten first.
_TURNS = ("turns", "turn")
_UTTERANCES = (
    *("resolved_utterance", "manual_rewritten_utterance", "automatic_rewritten_utterance"),
    *("utterance", "raw_utterance"),
)
_PASSAGE_KEYS = ("docid", "doc_id", "contents", "segment")
_FIRST_TEXT = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*"')


def is_document(start: Head) -> bool:
    """Return True where a file of queries is one JSON document, and not JSON Lines or text."""
    line = start.lines[0]
    if not line.lstrip().startswith(b"{"):
        return is_list(line)
    row = first_object(start)
    if not row:
        return True
    if any(key in row for key in (*ID_KEYS, *TEXT_KEYS)):
        return False
    if _is_topics_list(row):
        return True
    several = len(start.lines) > 1 and start.lines[1].lstrip().startswith(b"{")
    return not several and all(isinstance(value, str | None) for value in row.values())


def looks_like_topics(start: Head) -> bool:
    """Return True where one JSON document holds topics, judged by its beginning."""
    text = b"\n".join(start.lines)
    if not text.lstrip().startswith(b"{"):
        keys = set(top_level_keys(text.lstrip()[1:]))
        return bool(
            keys.intersection(LIST_ID_KEYS)
            and keys.intersection((*LIST_TEXT_KEYS, *_TURNS))
            and not keys.intersection(_PASSAGE_KEYS)
        )
    keys = set(top_level_keys(text))
    if keys == {"topics"}:
        return True
    if not _FIRST_TEXT.match(text) or keys.intersection((*ID_KEYS, *TEXT_KEYS, *_PASSAGE_KEYS)):
        return False
    # Any object of texts could be topics; their ids have digits, or the file's name tells.
    named = any(word in start.name.lower() for word in ("quer", "topic"))
    return named or all(any(c.isdigit() for c in key) for key in keys)


def json_topics(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    """Yields (line, query) of a JSON document.

    Raises:
        ConversionError: with the line: bad JSON, a value that is not text, an entry without id or text.
    """
    text, whole = read_document(path)
    if isinstance(whole, dict) and _is_topics_list(whole) and isinstance(whole["topics"], list):
        return _rows(path, text, text.index("["))
    if isinstance(whole, dict):
        return _pairs(path, text)
    if isinstance(whole, list):
        return _rows(path, text)
    raise ConversionError(path, 1, "neither {query_id: text} nor a list of JSON objects")


def _pairs(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, Query]]:
    key = None
    for line, value in json_values(path, text):
        if key is None:
            key = value
            continue
        query_id, key = key, None
        if query_id in (*ID_KEYS, *TEXT_KEYS):
            raise ConversionError(
                path,
                line,
                f'"{query_id}" is a field, not a query id; put each query on a line or all in a list',
            )
        if not query_id.strip():
            raise ConversionError(path, line, "a query without an id")
        if not isinstance(value, str) or not value.strip():
            raise ConversionError(path, line, f"query '{query_id}' has no text")
        yield line, Query(query_id, value)


def _is_topics_list(row: Mapping[str, Any]) -> bool:
    return row.keys() == {"topics"} and isinstance(row["topics"], list | None)


def _rows(path: str | os.PathLike[str], text: str, start: int = 0) -> Iterator[tuple[int, Query]]:
    for line, row in json_values(path, text, start):
        if not isinstance(row, dict):
            raise ConversionError(path, line, "an entry of the list is not a JSON object")
        query_id = an_id(path, line, row, LIST_ID_KEYS)
        if has_turns(row):
            yield from ((line, query) for query in turns_of(path, line, row))
            continue
        yield line, Query(query_id, topic_text(path, line, row, query_id, LIST_TEXT_KEYS))


def has_turns(row: Mapping[str, Any]) -> bool:
    """Return True where a topic is a conversation: its turns are the queries."""
    return "number" in row and any(isinstance(row.get(key), list | None) and key in row for key in _TURNS)


def turns_of(path: str | os.PathLike[str], line: int, row: Mapping[str, Any]) -> Iterator[Query]:
    """Yield the turns of a conversation (CAsT, iKAT), which are queries `TOPIC_TURN`."""
    topic = an_id(path, line, row, ("number",))
    for turn in row[next(key for key in _TURNS if key in row)] or ():
        if not isinstance(turn, dict):
            raise ConversionError(path, line, f"a turn of topic '{topic}' is not a JSON object")
        turn_id = an_id(path, line, turn, ("turn_id", "number"))
        query_id = turn_id if turn_id.startswith(f"{topic}_") else f"{topic}_{turn_id}"
        yield Query(query_id, a_text(path, line, turn, _UTTERANCES, f"turn '{query_id}'"))


def topic_text(
    path: str | os.PathLike[str], line: int, row: Mapping[str, Any], query_id: str, keys: Sequence[str]
) -> str:
    """A query's text: the first present key; a title is followed by its problem statement.

    Raises:
        ConversionError: it is missing or not text.
    """
    text = a_text(path, line, row, keys, f"query '{query_id}'")
    problem = row.get("problem_statement")
    if text is not row.get("title") or not isinstance(problem, str) or not problem.strip():
        return text
    title = text.strip()
    return f"{title}{' ' if title.endswith(('.', '?', '!', ':')) else '. '}{problem.strip()}"


#: How deep elements may be in each other, and how much text one SGML topic may have, in characters.
MAX_DEPTH = 32
MAX_TOPIC = 1024 * 1024

_ID_NAMES = ("number", "num", "id", "qid", "query_id", "topic_id")
_TEXT_NAMES = ("title", "query", "text", "question", "desc", "description", "summary")
_OTHER_NAMES = (
    "narr",
    "narrative",
    "head",
    "dom",
    "smry",
    "con",
    "fac",
    "def",
    "querytime",
    "querytweettime",
)
_TOPICS = ("topic", "top", "query")
_ENCODING = re.compile(rb"""\s*<\?xml\b[^>]*\bencoding\s*=\s*["']([\w.-]+)["']""")
_MARKUP = re.compile(rb"\s*<[A-Za-z!?]")
_OPENED = re.compile(rb"<([A-Za-z][\w.:-]*+)[^<>]*+>")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]*)(?:\s[^<>]*)?>")
_OUTSIDE = re.compile(r"<[A-Za-z/!?][^<>]*>")
#: The words that TREC puts before the text of a field.
_LABELS = {
    "num": re.compile(r"^\s*number(?:\s*:|\s)", re.IGNORECASE),
    "title": re.compile(r"^\s*topic\s*:", re.IGNORECASE),
    "desc": re.compile(r"^\s*description\s*:", re.IGNORECASE),
}
_ENTITIES = {"&quot;": '"', "&apos;": "'"}


def dialect(start: Head) -> str | None:
    """The markup of a file: "sgml" or "xml" topics, "other", or None."""
    if not _MARKUP.match(start.lines[0]):
        return None
    text = b"\n".join(start.lines)
    for index, tag in enumerate(_OPENED.finditer(text)):
        name = tag[1].lower()
        # The outermost elements' names are the tracks' own: <webtrack2009>, <xml><topics>.
        if index > 2:
            break
        if name == b"top":
            return "sgml"
        if name in (b"topic", b"query"):
            return "xml"
    return "other"


def sgml_topics(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    """Yields (line, query) of TREC's SGML.

    Raises:
        ConversionError: with the line: a topic without number or text, or without its end; text outside.
    """
    topic: _Topic | None = None
    for number, line in iter_lines(path):
        text = decode(path, number, line)
        position, indent = 0, len(text) - len(text.lstrip())
        for tag in _TAG.finditer(text):
            closing, name = bool(tag[1]), tag[2].lower()
            if name not in ("top", *_ID_NAMES, *_TEXT_NAMES, *_OTHER_NAMES) and tag.start() > indent:
                continue  # a word in angle brackets, or a mark-up of words
            before, position = text[position : tag.start()], tag.end()
            if topic is None:
                _nothing(path, number, before)
                if name == "top" and not closing:
                    topic = _Topic(number)
                elif name in (*_ID_NAMES, *_TEXT_NAMES):
                    raise ConversionError(path, number, f"<{tag[1]}{name}> is outside of <top>...</top>")
                continue
            topic.add(path, number, before)
            if name != "top":
                topic.enter(None if closing else name)
            elif closing:
                yield topic.line, topic.query(path)
                topic = None
            else:
                raise ConversionError(
                    path, number, f"a topic begins inside the one of line {topic.line}: its </top> is missing"
                )
        if topic is None:
            _nothing(path, number, text[position:])
        else:
            topic.add(path, number, text[position:] + "\n")
    if topic is not None:
        raise ConversionError(path, topic.line, "this topic has no </top>: is the file complete?")


def xml_topics(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    """Yields (line, query) of an XML file, in the encoding that it declares, without external entities.

    Raises:
        ConversionError: with the line: bad XML, declared entities, a topic without number or text, elements
            more than `MAX_DEPTH` deep.
    """
    declared = _ENCODING.match(head(path).lines[0])
    encoding = declared[1].decode() if declared else "UTF-8"
    # UTF-16 is refused before; who converts it leaves what it declares.
    if encoding.lower().replace("-", "") in ("utf8", "ascii", "usascii", "utf16", "utf16le", "utf16be"):
        return iter(_Xml(path).read(read_whole(path)))
    try:
        document = b"\n".join(line for _, line in iter_lines(path)).decode(encoding)
    except (LookupError, UnicodeDecodeError) as error:
        raise ConversionError(path, 1, f"is not in the encoding that it declares: {error}") from None
    return iter(_Xml(path).read(document))


def _nothing(path: str | os.PathLike[str], number: int, text: str) -> None:
    rest = _OUTSIDE.sub("", text).strip()
    if rest:
        raise ConversionError(path, number, f"text outside of <top>...</top>: '{rest[:40]}'")


class _Topic:
    """The fields read so far of an SGML topic."""

    def __init__(self, line: int) -> None:
        self.line = line
        self._fields: dict[str, list[str]] = {}
        self._field: list[str] | None = None
        self._size = 0

    def enter(self, name: str | None) -> None:
        """Begins a field, or with None ends the last one. The first of two equal fields counts."""
        self._field = None
        if name is not None and name not in self._fields:
            self._field = self._fields[name] = []

    def add(self, path: str | os.PathLike[str], number: int, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_TOPIC:
            raise ConversionError(
                path, number, f"the topic of line {self.line} is longer than {MAX_TOPIC // 2**20} MiB"
            )
        if self._field is not None:
            self._field.append(text)

    def query(self, path: str | os.PathLike[str]) -> Query:
        from xml.sax.saxutils import unescape

        fields = {name: unescape("".join(parts), _ENTITIES) for name, parts in self._fields.items()}
        for name, label in _LABELS.items():
            if name in fields:
                fields[name] = label.sub("", fields[name], count=1)
        return _query(path, self.line, fields, "")


class _Xml:
    """A pass of expat over a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._queries: list[tuple[int, Query]] = []
        self._open: list[str] = []
        # The depth of the topic that is open, and its line; 0 where none is.
        self._depth = 0
        self._line = 0
        self._fields: dict[str, list[str]] = {}
        self._field: list[str] = []
        self._direct: list[str] = []
        self._parser = parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        # Default attributes of a DTD are ignored.
        parser.specified_attributes = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped

    def read(self, document: str) -> list[tuple[int, Query]]:
        try:
            self._parser.Parse(document, True)
        except expat.ExpatError as error:
            raise ConversionError(
                self._path, error.lineno, f"not valid XML: {expat.ErrorString(error.code)}"
            ) from None
        return self._queries

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        name = _local(name)
        self._open.append(name)
        if len(self._open) > MAX_DEPTH:
            raise self._refused(f"elements are nested more than {MAX_DEPTH} deep")
        if not self._depth:
            if name in _TOPICS:
                self._depth, self._line = len(self._open), self._parser.CurrentLineNumber
                self._fields, self._direct = {}, []
                for key, value in attributes.items():
                    if _local(key) in _ID_NAMES:
                        self._fields.setdefault(_local(key), [value])
        elif len(self._open) == self._depth + 1:
            # Of two of one name the first counts.
            self._field = []
            self._fields.setdefault(name, self._field)

    def _text(self, text: str) -> None:
        if self._depth:
            (self._direct if len(self._open) == self._depth else self._field).append(text)

    def _end(self, _: str) -> None:
        if self._depth == len(self._open):
            fields = {name: "".join(parts) for name, parts in self._fields.items()}
            self._queries.append((self._line, _query(self._path, self._line, fields, "".join(self._direct))))
            self._depth = 0
        self._open.pop()

    def _entity(self, name: str, *_: object) -> None:
        raise self._refused(
            f"declares the entity '{name[:40]}'; entities are rejected: write out what they mean"
        )

    def _skipped(self, name: str, *_: object) -> None:
        raise self._refused(f"the entity '&{name[:40]};' is not declared here; write what it means")

    def _refused(self, reason: str) -> ConversionError:
        return ConversionError(self._path, self._parser.CurrentLineNumber, reason)


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _query(path: str | os.PathLike[str], line: int, fields: Mapping[str, str], direct: str) -> Query:
    """The query that a topic's fields are, with one space between words."""
    query_id = next(
        (" ".join(fields[name].split()) for name in _ID_NAMES if fields.get(name, "").strip()), ""
    )
    if not query_id:
        raise ConversionError(
            path, line, "a topic without a number (<num>, or number= or id= of its element)"
        )
    for text in (*(fields.get(name, "") for name in _TEXT_NAMES), direct):
        words = " ".join(text.split())
        if words:
            return Query(query_id, words)
    raise ConversionError(path, line, f"topic '{query_id}' has no text (<title>, <query> or <desc>)")
