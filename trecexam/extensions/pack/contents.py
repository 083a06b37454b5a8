"""The records of a pack: each part except files is JSON Lines of one kind of record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from converters.errors import Lost
from trecexam.errors import TrecexamError, plain_reason
from trecexam.extensions.pack.container import FREE, is_safe, unpacked, written
from trecexam.graders.base import identity_digest

#: Where the track's files are, and those of out/.
TRACK, OUT = "track/", "out/"
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Rating = Annotated[int, Field(ge=0, le=5)]
R = TypeVar("R")


class Record(BaseModel):
    """A line of a part."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, ser_json_inf_nan="constants")


class PackedText(Record):
    """A passage. `sha256` is None if it is too short to be graded, `text` is None if it is not packed."""

    docid: str = Field(min_length=1)
    sha256: Digest | None = None
    text: str | None = None


class Source(Record):
    """Grader and environment of answers; `by` is the sha256 of both as canonical JSON."""

    by: Digest
    identity: dict[str, Any]
    environment: dict[str, str] | None = None

    @classmethod
    def of(cls, identity: Mapping[str, Any], environment: Mapping[str, str] | None) -> Source:
        """A source from identity and environment."""
        both = json.loads(json.dumps({"identity": dict(identity), "environment": environment}))
        return cls(by=identity_digest(both).hex(), **both)

    @cached_property
    def grader(self) -> str:
        """sha256 of the identity, as in the store."""
        return identity_digest(self.identity).hex()


class PackedAnswer(Record):
    """A source's raw answer to an item on a passage, which are named by their sha256."""

    by: Digest
    passage: Digest
    item: Digest
    rating: Rating | None
    status: Literal["ok", "unparsed", "refused", "error"]
    answer: str
    probabilities: tuple[float, ...] | None = None
    cut_at: int | None = None

    @property
    def said(self) -> tuple[int | None, str, str, tuple[float, ...] | None, int | None]:
        """Status, rating and raw answer."""
        return self.rating, self.status, self.answer, self.probabilities, self.cut_at


class Conflict(PackedAnswer):
    """An answer of `pack` that is not used, because a pack merged before has another one."""

    pack: str


class PackedAssessment(Record):
    """A grader's traits, see `GraderTraits`, or the reason why it cannot grade.

    `complete` tells whether it was asked about all cells, `reads` which of its traits read its answers,
    `rejected` what of the track was rejected: file, line, reason, and how much was lost.
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
    rejected: tuple[tuple[str, int | None, str, Lost], ...] = ()


class About(Record):
    """The manifest without its parts.

    Attributes:
        texts_at: the files of the track that passages come from, and that are made of texts.jsonl.
        min_text: the setting.
        inputs: the files of the track -> sha256 there; of some the pack has other bytes.
        versions: of what `outputs` were made with.
        outputs: the files of out/ -> sha256.
    """

    texts_at: Annotated[tuple[str, ...], Field(max_length=8)] = ()
    min_text: int = Field(1, ge=1, le=2**20)
    inputs: dict[str, str] = {}
    versions: dict[str, str | None] = {}
    outputs: dict[str, Digest] = {}


@dataclass(frozen=True)
class Pack:
    """A pack in memory; `files` are the parts below `track/` and `out/`, by their names in the pack."""

    about: About
    files: Mapping[str, bytes]
    texts: Sequence[PackedText] = ()
    graders: Sequence[Source] = ()
    assessments: Sequence[PackedAssessment] = ()
    answers: Sequence[PackedAnswer] = ()
    conflicts: Sequence[Conflict] = ()

    def below(self, folder: str) -> dict[str, bytes]:
        """The files of a folder, by relative name."""
        matches = ((name, content) for name, content in self.files.items() if name.startswith(folder))
        return {name.removeprefix(folder): content for name, content in matches}

    def to_bytes(self) -> bytes:
        """The bytes of the file, deterministic."""
        parts = dict(self.files)
        for name in _KINDS:
            lines = [each.model_dump_json(exclude_defaults=True) + "\n" for each in getattr(self, name)]
            parts |= {f"{name}.jsonl": "".join(lines).encode()} if lines else {}
        return written(parts, self.about.model_dump(mode="json"))


_KINDS: Mapping[str, type[Record]] = {
    "texts": PackedText,
    "graders": Source,
    "assessments": PackedAssessment,
    "answers": PackedAnswer,
    "conflicts": Conflict,
}


def read_pack(path: Path) -> Pack:
    """Reads a pack from a file.

    Raises:
        TrecexamError: it is not a pack, damaged or malicious; the message names part and line.
    """
    manifest, parts = unpacked(path)
    about = {key: value for key, value in manifest.items() if key not in ("format", "schema", "parts")}
    files = {name: content for name, content in parts.items() if name.startswith((TRACK, OUT))}
    read = _validated(path, "manifest.json", [json.dumps(about)], About.model_validate_json)
    records: dict[str, Any] = {}
    for name in parts.keys() - files.keys():
        kind = _KINDS.get(name.removesuffix(".jsonl"))
        if kind is None:
            raise refused(path, f"a pack has no part called {name!r}")
        lines = parts[name].splitlines()
        records[name.removesuffix(".jsonl")] = _validated(path, name, lines, kind.model_validate_json)
    pack = Pack(read[0], files, **records)
    for reason in _contradictions(pack):
        raise refused(path, reason)
    return pack


def refused(path: Path, reason: str) -> TrecexamError:
    """The error for a rejected pack."""
    return TrecexamError(f"refused, nothing was unpacked: {reason}", path=path)


def _contradictions(pack: Pack) -> Iterable[str]:
    """Contradictions between the records."""
    if not all(map(is_safe, (*pack.about.texts_at, *pack.about.inputs, *pack.about.outputs))):
        yield "manifest.json names a file outside of the pack"
    if len(pack.texts) * pack.about.min_text > FREE:
        yield "what replaces its texts would be larger than they can be"
    graders = {each.by: each.grader for each in pack.graders}
    if any(Source.of(each.identity, each.environment).by != each.by for each in pack.graders):
        yield "`by` in graders.jsonl is not the digest of identity and environment"
    if any(each.grader not in {None, *graders.values()} for each in pack.assessments):
        yield "an assessment names no grader of graders.jsonl"
    all_answers = (*pack.answers, *pack.conflicts)
    if any(each.by not in graders or (each.rating is None) == (each.status == "ok") for each in all_answers):
        yield "an answer names nobody in graders.jsonl, or its rating does not go with its status"
    if len({(graders[each.by], each.passage, each.item) for each in pack.answers}) < len(pack.answers):
        yield "a grader has two answers to one cell"


def _validated(path: Path, part: str, lines: Iterable[Any], read: Callable[[Any], R]) -> tuple[R, ...]:
    records: list[R] = []
    try:
        records += map(read, lines)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise refused(path, f"line {len(records) + 1} of {part}: {where} {plain_reason(first)}") from None
    return tuple(records)
