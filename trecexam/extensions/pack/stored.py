"""Graders of a track that was made from a pack, and the comparison of its out/ with the pack's digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from converters.errors import ConversionError
from trecexam.errors import GraderError, TrecexamError
from trecexam.files.kept import read_object, read_regular
from trecexam.graders.base import Answer, Cell, Grader, Scale
from trecexam.graders.registry import available
from trecexam.graders.traits import GraderTraits
from trecexam.line.loader import TrackLoader
from trecexam.line.track_graders import ONLY
from trecexam.outputs.outputs import MANIFEST
from trecexam.tables.text import plural, shorten_list
from trecexam.track import PACK, TrackFolder, refuse_code

_SAID = ("needs_query_text", "score_settings", "free_text", "cells_share")
_READERS = ("cosines", "label", "probabilities", "read")
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Rating = Annotated[int, Field(ge=0, le=5)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class PackedAnswer(_Record):
    """A raw answer to an item on a passage, which are named by their sha256."""

    source: int = Field(ge=0)
    passage: Digest
    item: Digest
    rating: Rating | None = None
    status: Literal["ok", "unparsed", "refused", "error"]
    answer: str
    probabilities: tuple[float, ...] | None = None
    cut_at: int | None = None

    @property
    def grade(self) -> tuple[int | None, str, str, tuple[float, ...] | None, int | None]:
        """Rating, status, raw answer, probabilities and the limit that ended the answer."""
        return self.rating, self.status, self.answer, self.probabilities, self.cut_at


class Source(_Record):
    """The grader of answers, and what its model ran on."""

    identity: dict[str, Any]
    environment: Mapping[str, str] | None = None


class PackedGrader(_Record):
    """A grader's identity and traits; `settings` is the sha256 of its settings and its prompt."""

    settings: Digest
    identity: dict[str, Any]
    item_kinds: tuple[str, ...] = ()
    needs_query_text: bool = False
    scale: tuple[Rating, Rating] = (5, 4)
    score_settings: Mapping[str, Any] = {}
    free_text: bool | None = None
    cells_share: Literal["nothing", "prompts", "answer"] | None = None
    model_and_prompt: tuple[str | None, str | None] | None = None
    reads: tuple[str, ...] = ()


def packed_grader(loader: TrackLoader) -> PackedGrader:
    """Return what a pack holds of a grader."""
    traits = loader.traits
    names = None
    with suppress(TrecexamError, ConversionError):
        names = traits.model_and_prompt()
    return PackedGrader(
        settings=_settings_digest(loader.folder),
        identity=dict(loader.grader.identity),
        item_kinds=tuple(sorted(traits.item_kinds)),
        scale=(traits.scale.max_rating, traits.scale.min_rating),
        model_and_prompt=names,
        reads=tuple(each for each in _READERS if getattr(traits, each) is not None),
        **{name: getattr(traits, name) for name in _SAID},
    )


def _settings_digest(folder: TrackFolder) -> str:
    prompt = folder.prompt()
    with suppress(OSError):
        text = b"" if prompt is None else read_regular(prompt)
        return sha256(folder.config.grader.model_dump_json().encode() + text).hexdigest()
    return ""


class StoredGrader:
    """A grader with the identity and traits of a pack; the model is loaded for cells without a grade only."""

    def __init__(self, packed: PackedGrader, folder: TrackFolder, model: Callable[[], Grader]) -> None:
        self.identity: Mapping[str, Any] = packed.identity
        self._model = model
        settings = folder.config.grader
        refuse_code(settings.metric, folder.root, trusted=folder.trust_code)
        factory = available().get(settings.name)
        reading = None if factory is None else factory.reading
        readers = {} if reading is None else reading(settings, folder.root)
        self.traits = GraderTraits(
            item_kinds=frozenset(packed.item_kinds),
            scale=Scale(*packed.scale),
            model_and_prompt=lambda: packed.model_and_prompt,
            cut_texts=lambda: 0,
            environment=lambda: None,
            **{name: getattr(packed, name) for name in _SAID if name != "free_text"},
            free_text=packed.free_text and "read" in readers,
            **{name: read for name, read in readers.items() if name in packed.reads},
        )

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Grade cells that the pack has no grade of, with the model.

        Raises:
            GraderError: the model is missing or another one.
        """
        model = self._model()
        if dict(model.identity) != self.identity:
            raise GraderError("the pack has no grade of these cells, and the model here is another one")
        yield from model.grade(cells)


class About(_Record):
    """The manifest of a pack; `sources` are those of the answers, by position."""

    graders: dict[str, PackedGrader]
    sources: tuple[Source, ...]
    inputs: dict[str, str]
    outputs: dict[str, str]
    versions: dict[str, str | None]


def stored_grader(folder: TrackFolder, model: Callable[[], Grader]) -> Grader | None:
    """Return the pack's grader; None if its settings changed, or if the pack has none."""
    about = _about(folder)
    packed = None if about is None else about.graders.get(folder.grader or ONLY)
    if packed is None or packed.settings != _settings_digest(folder):
        return None
    return StoredGrader(packed, folder, model)


def _about(folder: TrackFolder) -> About | None:
    with suppress(ValidationError):
        return About.model_validate(read_object(folder.shared_state / PACK))
    return None


def differences(folder: TrackFolder) -> str:
    """Compare out/ with the digests of the pack: name the files that differ, and what differs beside them."""
    pack = _about(folder)
    if pack is None:
        return f".trecexam/{PACK} is damaged: out/ is not compared with the pack"
    now = read_object(folder.shared_out / MANIFEST)
    differ = [name for name, digest in pack.outputs.items() if now.get("outputs", {}).get(name) != digest]
    n = plural(len(pack.outputs), "file")
    if not differ:
        return f"out/ is the same as in the pack: {n}"
    inputs = _changed(pack.inputs, now.get("inputs", {}))
    versions = [
        f"{name} {was or 'none'} then, {now.get('versions', {}).get(name) or 'none'} now"
        for name, was in pack.versions.items()
        if now.get("versions", {}).get(name) != was
    ]
    why = [*([f"other inputs: {shorten_list(inputs, quote='')}"] if inputs else []), *versions]
    reason = "; ".join(why) or "inputs and versions are the same, so answers are read differently"
    names = shorten_list(differ, 10, quote="")
    return f"{len(differ):,} of {n} of out/ differ from the pack: {names}; {reason}"


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
