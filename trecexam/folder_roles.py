"""What the files of a folder are to a track: queries, passages, runs and so on, told by content.

Where several files could have a role that one file has, ids decide: queries are those that runs and judgments
name, passages those that these have as documents. Names decide only what content leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import converters
from converters.errors import BadLines, ConversionError
from converters.lines import head
from converters.rag_responses import read_responses
from converters.scored_rows import is_ambiguous, rows_of, scored_rows
from trecexam.config import CONFIG_NAME
from trecexam.errors import TrackError, quoted
from trecexam.folder import files_in

Role = Literal["queries", "passages", "qrels", "recorded", "leaderboard", "bank", "runs"]
ONE: tuple[Role, ...] = ("queries", "passages", "qrels", "recorded", "leaderboard")
_ROLES: Mapping[str, Role] = {
    "queries": "queries",
    "passages": "passages",
    "qrels": "qrels",
    "rubric": "recorded",
    "grades": "recorded",
    "umbrela": "recorded",
    "leaderboard": "leaderboard",
    "bank": "bank",
    "run": "runs",
    "responses": "runs",
}
_NAMING: tuple[Role, ...] = ("runs", "qrels", "recorded", "bank")
#: Records of a file that are looked at.
_LOOKED_AT = 20_000
#: Files of one folder and role that are listed one by one.
_LISTED = 3


@dataclass(frozen=True)
class Found:
    """A file, and what it is read as.

    Attributes:
        role: None where it is left out.
        why: why it is used, or left out; "" where its content alone decides.
        format: as its content tells it; "" where it is in none that is known.
    """

    path: Path
    role: Role | None
    format: str
    why: str = ""
    query_ids: frozenset[str] = field(default=frozenset(), repr=False)
    doc_ids: frozenset[str] = field(default=frozenset(), repr=False)


def look_at(folder: Path, but: Path) -> tuple[Found, ...]:
    """What the files of a folder and its subfolders are, in the order of their paths.

    Hidden files and the `out/` of tracks in the folder are left out.

    Args:
        but: a folder whose files are not looked at: the track's own.

    Raises:
        TrackError: the folder is a track itself, or none of its files is of use to a track.
    """
    if (folder / CONFIG_NAME).is_file():
        raise TrackError(
            f"is a track already: `trecexam watch {quoted(folder)} --once` updates it; for another track of "
            "its files, name them with --queries, --passages, --bank, --qrels and --runs",
            path=folder,
        )
    outputs = {but.absolute(), *(each.absolute().parent / "out" for each in folder.rglob(CONFIG_NAME))}
    paths = [path for path in files_in(folder) if outputs.isdisjoint(path.absolute().parents)]
    files = _by_ids([_looked_at(path) for path in paths])
    for role in ONE:
        files = _one(files, role)
    files = _asked(files)
    if not any(each.role for each in files):
        raise TrackError(
            "no file here is in a format that a track takes; see `trecexam formats`", path=folder
        )
    return tuple(files)


def told(files: Iterable[Found], folder: Path) -> Iterator[str]:
    """A line for each file, or for each folder of many that are alike: what it is read as, and why."""
    alike: dict[tuple[object, ...], list[Found]] = {}
    for each in files:
        alike.setdefault((each.path.parent, each.role, each.format, each.why), []).append(each)
    for group in alike.values():
        names = [each.path.relative_to(folder).as_posix() for each in group]
        if len(names) > _LISTED:
            folder_name = group[0].path.parent.relative_to(folder).as_posix()
            names = [f"{len(names)} files in {'the folder' if folder_name == '.' else folder_name}"]
        first = group[0]
        for name in names:
            if first.role is None:
                yield f"left out {name}: {first.why}"
            else:
                why = f": {first.why}" if first.why else ""
                form = f" (format '{first.format}')" if first.format not in (first.role, "run") else ""
                yield f"took {name} as {first.role}{form}{why}"


def _looked_at(path: Path) -> Found:
    if not path.is_file():
        # Reading a pipe waits for ever.
        return Found(
            path, None, "", "a pipe or a device" if path.exists() else "a link to a file that is gone"
        )
    try:
        kind = converters.sniff(path)
        if kind == "qrels" and path.parent.name == "runs" and is_ambiguous(head(path)):
            kind = "run"
        role = _ROLES.get(kind)
        if role is None:
            return Found(path, None, kind, f"looks like the format '{kind}', which `init` does not take")
        queries, documents = _ids(path, kind)
    except ConversionError as error:
        unknown = error.reason.startswith("in none of the supported formats")
        return Found(path, None, "", "in none of the supported formats" if unknown else error.reason)
    if kind == "qrels" and "umbrela" in path.name.lower():
        return Found(path, "recorded", kind, "its name says that a model judged", queries, documents)
    return Found(path, role, kind, "", queries, documents)


def _ids(path: Path, kind: str) -> tuple[frozenset[str], frozenset[str]]:
    """Ids of the queries and documents that the first records of a file name; of queries also the texts.

    Raises:
        ConversionError: not one record can be read.
    """
    start = head(path)
    if rows_of(start):
        pairs = [(row.query_id, row.doc_id) for row in _first(scored_rows(path, BadLines().add))]
    elif kind == "run":
        rows = [line.decode(errors="replace").split() for line in start.lines if line[:1] != b"#"]
        pairs = [(row[0], row[2] if len(row) > 4 else row[1]) for row in rows if len(row) > 2]
    elif kind == "responses":
        responses = _first(read_responses(path, lambda error: None))
        pairs = [(each.query_id or each.query_text.strip(), "") for each in responses]
        pairs += [("", doc_id) for each in responses for doc_id in each.references]
    elif kind == "umbrela":
        pairs = [
            (each.query_id or each.query.strip(), each.doc_id) for each in _first(converters.read(path, kind))
        ]
    else:
        records = _first(converters.read(path, kind))
        pairs = [(getattr(each, "query_id", ""), getattr(each, "doc_id", "")) for each in records]
        pairs += [(each.text.strip(), "") for each in records if kind == "queries"]
    return frozenset(query for query, _ in pairs if query), frozenset(doc for _, doc in pairs if doc)


def _first(records: Iterable[Any]) -> list[Any]:
    """The first records of a file, up to the first line that cannot be read."""
    first: list[Any] = []
    try:
        first.extend(islice(records, _LOOKED_AT))
    except ConversionError:
        if not first:
            raise
    return first


def _by_ids(files: Sequence[Found]) -> list[Found]:
    """Queries and passages that the other files' ids show to be the other of both."""
    query_ids, documents = _named(files)
    changed = []
    for each in files:
        other: Role = "passages" if each.role == "queries" else "queries"
        ids = each.query_ids | each.doc_ids
        own_ids, other_ids = (query_ids, documents) if each.role == "queries" else (documents, query_ids)
        if each.role in ("queries", "passages") and not ids & own_ids and ids & other_ids:
            with suppress(ConversionError):
                queries, docs = _ids(each.path, other)
                why = f"its ids are those of {other} in runs and judgments"
                each = Found(each.path, other, other, why, queries, docs)
        changed.append(each)
    return changed


def _named(files: Iterable[Found]) -> tuple[set[str], set[str]]:
    """The ids of queries and of documents that runs, responses, judgments and banks name."""
    naming = [each for each in files if each.role in _NAMING]
    return set().union(*(each.query_ids for each in naming)), set().union(*(each.doc_ids for each in naming))


def _one(files: Sequence[Found], role: Role) -> list[Found]:
    """The files with at most one of a role: the first by its ids, then `test` in its name, then its size."""
    candidates = [each for each in files if each.role == role]
    if len(candidates) < 2:
        return list(files)
    query_ids, documents = _named(each for each in files if each.role != role)
    if role == "qrels":
        query_ids = {query_id for each in files if each.role == "queries" for query_id in each.query_ids}

    def rank(each: Found) -> tuple[int, bool, int]:
        named = len(each.doc_ids & documents if role == "passages" else each.query_ids & query_ids)
        # All splits of a collection are about its queries, and the one for training is the largest.
        named = min(named, 1) if role == "qrels" else named
        return named, "test" in each.path.name.lower(), each.path.stat().st_size

    best, second = sorted(candidates, key=rank, reverse=True)[:2]
    reasons = ("the other files name more of its ids", "its name says test", "it is the largest")
    differ = (text for text, a, b in zip(reasons, rank(best), rank(second), strict=True) if a != b)
    why = next(differ, "it is the first")
    option = f"; --{role} FILE takes another" if role != "leaderboard" else ""
    left = f"{best.path.name} is read as {role}, since {why}{option}"
    changed = {each.path: replace(each, role=None, why=left) for each in candidates}
    changed[best.path] = replace(best, why=f"of {len(candidates)} such files, since {why}")
    return [changed.get(each.path, each) for each in files]


def _asked(files: Sequence[Found]) -> list[Found]:
    """The files without runs, banks and judgments that name none of the queries that are taken."""
    queries = next((each for each in files if each.role == "queries"), None)
    # Of more queries the rest is not known.
    if queries is None or len(queries.query_ids) >= _LOOKED_AT:
        return list(files)
    why = f"none of the queries at its beginning is in {queries.path.name}"
    return [
        replace(each, role=None, why=f"{why}; --{each.role} takes it nevertheless")
        if each.role in _NAMING and each.query_ids and not each.query_ids & queries.query_ids
        else each
        for each in files
    ]
