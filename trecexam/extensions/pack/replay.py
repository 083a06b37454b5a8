"""Replays a packed track without its models: graders with recorded answers, and stand-ins for texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from trecexam.bank.model import passage_digest
from trecexam.config import TrackConfig, line_of_setting
from trecexam.errors import ConfigError, LackingError
from trecexam.extensions.pack.container import is_safe
from trecexam.extensions.pack.contents import PackedAssessment, PackedText
from trecexam.graders import Answer, Cell, available
from trecexam.graders.base import Scale
from trecexam.graders.traits import GraderTraits
from trecexam.line.track_graders import folder_of
from trecexam.track import PROMPT_SUFFIXES, TrackFolder, refuse_code

_STAND_IN = re.compile(r"sha256:([0-9a-f]{64})\.*")
_DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")
#: The settings that name files of the track.
_FILES = ("queries", "passages", "qrels", "official_leaderboard", "runs", "recorded", "prompt", "bank")


class Replayed:
    """A grader with stored answers only, which are read like those of its `Factory`.

    What it says of itself raises a LackingError where it could not go on when the track was packed.
    """

    def __init__(
        self, packed: PackedAssessment, identity: dict[str, Any] | None, folder: TrackFolder
    ) -> None:
        """Args: identity: None where it could not go on."""
        self._packed, self._identity, self._folder = packed, identity, folder

    @property
    def identity(self) -> Mapping[str, Any]:
        """The packed identity."""
        if self._identity is None:
            raise LackingError(self._packed.unable or "could not grade when the track was packed")
        return self._identity

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Grades nothing."""
        return iter(())

    @cached_property
    def traits(self) -> GraderTraits:
        """The packed traits, with this program's reader of raw answers.

        Raises:
            TrackError: its metric is code, which is not trusted.
            GraderError: its prompt cannot be read.
        """
        _ = self.identity
        packed, settings = self._packed, folder_of(self._folder, self._packed.name).config.grader
        refuse_code(settings.metric, self._folder.root, trusted=self._folder.trust_code)
        factory = available().get(settings.name)
        readers = (
            {} if factory is None or factory.reading is None else factory.reading(settings, self._folder.root)
        )
        return GraderTraits(
            item_kinds=frozenset(packed.item_kinds),
            needs_query_text=packed.needs_query_text,
            scale=Scale(*packed.scale),
            score_settings=packed.score_settings,
            free_text=packed.free_text and "read" in readers,
            known_passages=packed.known_passages,
            cells_share=packed.cells_share,
            model_and_prompt=lambda: packed.model_and_prompt,
            cut_texts=lambda: 0,
            environment=lambda: None,
            **{name: read for name, read in readers.items() if name in packed.reads},
        )


def stand_in(text: PackedText, min_text: int) -> str:
    """The text, or a stand-in if it is not packed, which is graded or too short like the text."""
    if text.text is not None:
        return text.text
    return "." * (min_text - 1) if text.sha256 is None else f"sha256:{text.sha256}".ljust(min_text, ".")


def digests_standing_in(texts: Iterable[PackedText], min_text: int) -> dict[str, str]:
    """The digest of each text -> the digest of its stand-in."""
    return {
        each.sha256: passage_digest(stand_in(each, min_text)).hex()
        for each in texts
        if each.sha256 is not None
    }


def renamed(content: bytes, digests: Mapping[str, str]) -> bytes:
    """A file with digests replaced."""
    named = {old.encode(): new.encode() for old, new in digests.items() if old != new}
    return _DIGEST.sub(lambda match: named.get(match[0], match[0]), content) if named else content


def is_of_people(name: str) -> bool:
    """Whether a file of the track has people's ratings, which contain digests of texts."""
    return name == "judgments.tsv" or (name.startswith("overrides") and name.endswith(".tsv"))


def real_digest(text: str) -> str | None:
    """The digest of the text behind this stand-in; None for a real text."""
    match = _STAND_IN.fullmatch(text)
    return match[1] if match else None


def refuse_outside(config: TrackConfig, path: Path, display_path: Path) -> None:
    """Raises an error for settings that name files outside of the track.

    Args:
        path: of trecexam.toml.
        display_path: in its place, for the message.

    Raises:
        ConfigError: one does.
    """
    sections = {"track": config.track, "grader": config.grader}
    sections |= {f"graders.{name}": section for name, section in config.graders.items()}
    for section, settings in sections.items():
        for key in _FILES:
            value = getattr(settings, key, None) or ()
            for each in (value,) if isinstance(value, str) else value:
                published = key == "prompt" and PurePosixPath(each).suffix.lower() not in PROMPT_SUFFIXES
                if not published and not is_safe(PurePosixPath(each).as_posix()):
                    raise ConfigError(
                        f"`{key}` in [{section}] names {each!r}, which is not in the track and was not "
                        f"packed: link it into the track, and name the link",
                        path=display_path,
                        line=line_of_setting(path, *section.split(".", 1), key),
                    )
