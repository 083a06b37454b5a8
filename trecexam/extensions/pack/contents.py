"""What is in a pack, as records; each part but files is JSON Lines of one kind of record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trecexam.errors import TrecexamError
from trecexam.extensions.pack.container import is_safe, unpacked, written
from trecexam.graders.base import identity_digest
from trecexam.line.store import GradeRow

#: Where the track's files are, and those of out/.
TRACK, OUT = "track/", "out/"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Rating = Annotated[int, Field(ge=0, le=5)]
R = TypeVar("R", bound="Record")


class Record(BaseModel):
    """A line of a part."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


class PackedText(Record):
    """A passage: its text, or what is known of one that is not packed."""

    docid: str = Field(min_length=1)
    sha256: Digest
    characters: int = Field(ge=1, le=2**31)
    text: str | None = None


class Environment(Record):
    """What answers were made on; `environment` is its number in this pack."""

    environment: int
    details: dict[str, str]


class GraderIdentity(Record):
    """Who gave answers: `grader` is the sha256 of the identity as canonical JSON."""

    grader: Digest
    identity: dict[str, Any]


class PackedAnswer(Record):
    """A grader's raw answer to an item on a passage, both by the sha256 of what they are."""

    grader: Digest
    passage: Digest
    item: Digest
    rating: Rating | None
    status: Literal["ok", "unparsed", "refused", "error"]
    answer: str
    probabilities: tuple[float, ...] | None = None
    environment: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The cell and its grader."""
        return self.grader, self.passage, self.item

    @property
    def said(self) -> tuple[object, ...]:
        """What the grader gave."""
        return self.rating, self.status, self.answer, self.probabilities

    def row(self, item_id: int, passage_id: int) -> GradeRow:
        """As the store has it."""
        return GradeRow(item_id, passage_id, *self.said)  # type: ignore[arg-type]


class Conflict(Record):
    """An answer that does not count, as another pack that was merged before had another one."""

    pack: str
    answer: PackedAnswer


class PackedAssessment(Record):
    """What one grader of the track says of itself, see `GraderTraits`; or why it cannot go on.

    `complete` tells whether it was asked about all cells, `reads` which traits read its answers.
    """

    name: str
    grader: Digest | None = None
    unable: str | None = None
    complete: bool = False
    item_kinds: tuple[str, ...] = ()
    needs_query_text: bool = False
    scale: tuple[Rating, Rating] = (5, 4)
    score_settings: dict[str, Any] = {}
    free_text: bool | None = None
    cells_share: Literal["nothing", "prompts", "answer"] | None = None
    known_passages: dict[str, tuple[str, ...]] | None = None
    model_and_prompt: tuple[str | None, str | None] | None = None
    reads: tuple[str, ...] = ()


class About(Record):
    """The manifest, but for its parts.

    Attributes:
        texts_at: the files of the track that passages come from; what stands in for them has these names.
        min_text: the setting.
        inputs: the files of the track -> sha256 there; of some the pack has other bytes.
        versions: of what `outputs` were made with.
        outputs: the files of out/ -> sha256.
    """

    texts: Literal["whole", "digests"] = "digests"
    texts_at: tuple[str, ...] = ()
    min_text: int = Field(1, ge=1, le=2**20)
    inputs: dict[str, Digest] = {}
    versions: dict[str, str | None] = {}
    outputs: dict[str, Digest] = {}


#: Part -> what its lines are.
_PARTS: Mapping[str, type[Record]] = {
    "texts.jsonl": PackedText,
    "environments.jsonl": Environment,
    "graders.jsonl": GraderIdentity,
    "assessments.jsonl": PackedAssessment,
    "answers.jsonl": PackedAnswer,
    "conflicts.jsonl": Conflict,
}


@dataclass(frozen=True)
class Pack:
    """A pack in memory.

    Attributes:
        files: the parts below `track/` and `out/`, by their names in the pack.
        records: of the other parts, by the name of the part.
    """

    about: About
    files: Mapping[str, bytes]
    records: Mapping[str, Sequence[Record]] = field(default_factory=dict)

    def of(self, kind: type[R]) -> Sequence[R]:
        """All records of a kind."""
        name = next(name for name, each in _PARTS.items() if each is kind)
        return self.records.get(name, ())  # type: ignore[return-value]

    def below(self, folder: str) -> dict[str, bytes]:
        """The files of a folder, by their names there."""
        return {
            name.removeprefix(folder): content
            for name, content in self.files.items()
            if name.startswith(folder)
        }

    def to_bytes(self) -> bytes:
        """The file; the same for the same pack."""
        lines = {name: _lines(self.records[name]) for name in _PARTS if self.records.get(name)}
        return written({**self.files, **lines}, self.about.model_dump(mode="json"))


def packed(about: About, files: Mapping[str, bytes], *records: Iterable[Record]) -> Pack:
    """A pack of these parts; each group of records is of one kind, and comes in its order."""
    parts: dict[str, Sequence[Record]] = {}
    for group in map(tuple, records):
        if group:
            parts[next(name for name, kind in _PARTS.items() if kind is type(group[0]))] = group
    return Pack(about, files, parts)


def read_pack(path: Path) -> Pack:
    """The pack in a file.

    Raises:
        TrecexamError: it is none, damaged, or made to do harm; it says which part and line.
    """
    manifest, parts = unpacked(path)
    about = {key: value for key, value in manifest.items() if key not in ("format", "schema", "parts")}
    read = _validated(path, "manifest.json", 1, lambda: About.model_validate_json(json.dumps(about)))
    records: dict[str, Sequence[Record]] = {}
    files: dict[str, bytes] = {}
    for name, content in parts.items():
        kind = _PARTS.get(name)
        if kind is None and not name.startswith((TRACK, OUT)):
            raise TrecexamError(f"refused: no part of a pack is called {name!r}", path=path)
        if kind is None:
            files[name] = content
            continue
        lines = enumerate(content.splitlines(), 1)
        records[name] = tuple(
            _validated(path, name, number, lambda line=line, kind=kind: kind.model_validate_json(line))
            for number, line in lines
        )
    pack = Pack(read, files, records)
    _check(path, pack)
    return pack


def _check(path: Path, pack: Pack) -> None:
    """Refuses records that contradict each other.

    Raises:
        TrecexamError: some do.
    """
    wrong = ""
    if not all(map(is_safe, (*pack.about.texts_at, *pack.about.inputs, *pack.about.outputs))):
        wrong = "manifest.json names a file that leads elsewhere"
    graders = {each.grader: each for each in pack.of(GraderIdentity)}
    if any(identity_digest(each.identity).hex() != digest for digest, each in graders.items()):
        wrong = "a grader's digest is not that of its identity"
    if any(each.grader is not None and each.grader not in graders for each in pack.of(PackedAssessment)):
        wrong = "an assessment names no grader of graders.jsonl"
    environments = {None, *(each.environment for each in pack.of(Environment))}
    keys = set[tuple[str, str, str]]()
    for each in pack.of(PackedAnswer):
        if each.grader not in graders or each.environment not in environments or each.key in keys:
            wrong = "an answer is there twice, or names no grader or environment of the pack"
        if (each.rating is not None) != (each.status == "ok"):
            wrong = 'an answer has a rating and a status that is not "ok", or none and "ok"'
        keys.add(each.key)
    if wrong:
        raise TrecexamError(f"refused, nothing was unpacked: {wrong}", path=path)


def _validated(path: Path, part: str, line: int, read: Any) -> Any:
    try:
        return read()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise TrecexamError(
            f"refused, nothing was unpacked: line {line} of {part}: {where}: {first['msg']}", path=path
        ) from None


def _lines(records: Sequence[Record]) -> bytes:
    return b"".join(each.model_dump_json(exclude_defaults=True).encode() + b"\n" for each in records)
