"""Who grades a track, and the settings on the scale of who grades it."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property

from converters.errors import ConversionError
from converters.gold import KIND as GOLD
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.extension import named
from trecexam.files.stamps import stamp
from trecexam.folder import PACK, PACKED, TrackFolder
from trecexam.graders import Grader, create
from trecexam.graders.base import identity_json
from trecexam.graders.registry import is_standard, reading_fingerprint
from trecexam.graders.writing.base import naming
from trecexam.line.input_files import sha256_of
from trecexam.line.kept_codes import KeptCodes
from trecexam.line.kind import Kind
from trecexam.line.track_graders import declared_kind, kind_of
from trecexam.version import __version__


class TrackGrader:
    """The grader of one track; made when it is first asked for."""

    def __init__(self, folder: TrackFolder, grader: Grader | None = None) -> None:
        """A grader that is not made yet.

        Args:
            grader: a grader in place of the one that the settings name.
        """
        self._folder = folder
        self._given = grader
        self._recording = self._recording_now()
        #: sha256 (hex) of the user's own prompt, set before the grader is made; None without a readable one.
        self._prompt_digest: str | None = None

    @property
    def is_own(self) -> bool:
        """Whether it is the one that the track's settings name."""
        return self._given is None

    def is_current(self) -> bool:
        """Whether the settings' grader would be the same now: its recording did not change since."""
        return not self.is_own or self._recording == self._recording_now()

    def _recording_now(self) -> object:
        # What cannot be found is said where it is read.
        with suppress(TrecexamError):
            path = self._folder.recorded()
            return path and stamp(path)
        return None

    @cached_property
    def config(self) -> TrackConfig:
        """The track's settings, on the scale of its grader.

        Raises:
            ConfigError: they do not go with that scale.
        """
        folder, grader = self._folder, self.grader
        return folder.config.suited(grader.score_settings, *grader.scale, folder.config_path)

    @cached_property
    def grader(self) -> Grader:
        """The grader: the one that was given, or that the settings name."""
        # First: what the grader reads of it is this content, or a later one, whose codes nobody finds by it.
        self._prompt_digest = self._digest_prompt()
        if self._given is not None:
            return self._given
        if (self._folder.root / PACK).is_file():
            stored: Grader | None = named(f"{PACKED}:stored_grader")(self._folder, self._made)
            return stored or self._made()
        return self._made()

    @cached_property
    def kind(self) -> Kind:
        """What the grader grades.

        Raises:
            ConfigError: the grader asks about other things than the settings say.
        """
        return kind_of(self._folder, self.grader.item_kinds)

    def _made(self) -> Grader:
        """Make the grader that the settings name."""
        folder, config = self._folder, self._folder.config
        with naming(folder.section):
            kind = declared_kind(folder)
            make = None if kind is None else kind.graders.get(config.grader.name)
            if make is not None:
                made: Grader = named(make)(config.grader, folder.root)
                return made
            return create(config.grader, folder.root, config.ray, trust_code=folder.trust_code)

    def _digest_prompt(self) -> str | None:
        prompt = self._folder.prompt()
        with suppress(ConversionError, OSError):
            return None if prompt is None else sha256_of(prompt)
        return None

    @cached_property
    def kept_codes(self) -> KeptCodes | None:
        """Codes as they were read last; None where what is read may be another thing tomorrow."""
        grader, config = self.grader, self._folder.config.grader
        # What of a model's words is a rating is decided by code: that of others has no fingerprint.
        is_builtin = self.is_own and is_standard(config.name) and GOLD not in grader.item_kinds
        if grader.free_text and not is_builtin:
            return None
        reader = [
            __version__,
            reading_fingerprint(),
            identity_json(self.grader.identity),
            config.model_dump(mode="json"),
            self._prompt_digest,
        ]
        return KeptCodes(self._folder.state / "codes", reader)
