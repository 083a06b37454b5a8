"""The writer that a track's settings name, for test banks or for a grader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from trecexam.config import GeneratorSection, GraderSection, LanguageModelSection, Section, TrackConfig
from trecexam.config.sections import LanguageModel
from trecexam.config.track_config import purse_of
from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.server.model import PassingError, Request, Server, plain, shortened
from trecexam.graders.weights import model_folder
from trecexam.graders.writing.asking import AnswerFile, KeepingWriter
from trecexam.graders.writing.base import Fitted, LocalModelSettings, Writer, naming

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange


def generator_settings(config: TrackConfig) -> tuple[GeneratorSection, str]:
    """Return who writes test banks, and the section of trecexam.toml that says so.

    Where [generator] names no model, it is the language model of [grader], asked as that is, but for what
    [generator] sets.

    Raises:
        GraderError: neither names one.
    """
    generator, grader = config.generator, config.grader
    if generator.name is None and (generator.model is not None or generator.base_url is not None):
        name = "openai" if generator.base_url is not None else "causal"
        generator = generator.model_copy(update={"name": name})
    if generator.name is not None:
        return generator, "generator"
    if not config.has_writer:
        raise GraderError(
            "no language model to write with: set `name` (openai, causal or seq2seq) and `model` in "
            "[generator] of trecexam.toml"
        )
    shared = {key: getattr(grader, key) for key in LanguageModelSection.model_fields}
    if grader.name == "seq2seq" and grader.model is None:
        shared["model"] = provided("models").default
    if grader.name not in get_args(LanguageModel):
        # In this process, the model's files say what kind it is.
        shared["name"] = "openai" if grader.base_url is not None else None
    set_values = {key: getattr(generator, key) for key in generator.model_fields_set}
    return GeneratorSection.model_validate({**shared, **set_values}), "grader"


def create_writer(config: TrackConfig, root: Path, system: str = "") -> Writer:
    """Make the writer that a track's settings name; loads no model. `system` stands before each prompt.

    Raises:
        GraderError: none is named, or it cannot run here; the message says what to do.
    """
    settings, section = generator_settings(config)
    with naming(section):
        if settings.name == "openai":
            return ServerWriter(settings, section, system=system)
        return _local_writer(settings, root, system, section, config.elsewhere)


def keeping_writers(folder: TrackFolder, *writers: Writer) -> list[KeepingWriter]:
    """Return these writers, or the one that the settings name, with the file that keeps a track's answers."""
    chosen = writers or (create_writer(folder.config, folder.root),)
    file = AnswerFile(folder.answers_path, writing_purse(folder))
    return [KeepingWriter(writer, file) for writer in chosen]


def writing_purse(folder: TrackFolder) -> str:
    """Return the section whose budget pays for what is written."""
    budget_keys = folder.config.generator.model_fields_set & {"budget", "budget_tokens"}
    if budget_keys or generator_settings(folder.config)[1] == "generator":
        return "generator"
    return purse_of(folder.whole, folder.grader)


def grading_writer(
    settings: GraderSection, root: Path, system: str = "", schema: Mapping[str, Any] | None = None
) -> Writer:
    """Return the model of [grader] as a writer, for graders that read what it writes; loads no model.

    Args:
        system: as in `create_writer`.
        schema: of the JSON object that a server's model must answer with; None where it may write anything.
    """
    if settings.base_url is not None:
        return ServerWriter(settings, "grader", system=system, schema=schema)
    return _local_writer(settings, root, system)


def _local_writer(
    settings: GeneratorSection | GraderSection,
    root: Path,
    system: str,
    section: str = "grader",
    elsewhere: Section | None = None,
) -> Writer:
    """Make a writer of a model in this process, or on a cluster."""
    if settings.model is None:
        raise GraderError(
            f"`{settings.name}` needs a language model: set `model` in [grader] of trecexam.toml to a folder "
            "or a hub id; or `base_url` and `model` to a server and what it calls its model"
        )
    models = provided("models")
    missing = models.missing()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    folder = model_folder(settings.model, settings.revision, root, settings.name or "", models.how_to_get)
    kind = settings.name if settings.name in ("causal", "seq2seq") else "causal"
    # Damaged files show when the model is loaded.
    with suppress(OSError, ValueError, AttributeError):
        if kind != settings.name and json.loads((folder / "config.json").read_bytes()).get(
            "is_encoder_decoder"
        ):
            kind = "seq2seq"
    model = LocalModelSettings(
        kind,
        folder.absolute(),
        Path(settings.model).name,
        settings.temperature,
        settings.seed,
        settings.max_new_tokens or settings.local_tokens,
        settings.device,
        settings.dtype,
        settings.max_batch_tokens,
        system,
        getattr(settings, "max_length", None),
    )
    given = (model,) if elsewhere is None else (model, elsewhere)
    maker = models if elsewhere is None else provided("elsewhere")
    writer: Writer = maker.writer(*given, root / ".trecexam" / "weights.json", section)
    return writer


class ServerWriter(Server):
    """Has a server write, several prompts at a time; errors name a `section` of trecexam.toml."""

    environment = None

    def __init__(
        self,
        settings: GraderSection | GeneratorSection,
        section: str,
        *,
        system: str,
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(settings, system=system, schema=schema)
        self.section = section
        self._max_characters = settings.max_characters if isinstance(settings, GraderSection) else None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "writer": "openai",
            "model": self.model,
            # Which weights the server has under the model's name, in the user's words.
            "revision": self.settings.revision,
            "decode": self.decoding(),
            **({"max_characters": self._max_characters} if self._max_characters else {}),
        }

    def plain(self, text: str) -> str:
        return plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        part = text if self._max_characters is None else shortened(text, self._max_characters)
        return Fitted(render(plain(part)), cut=len(part) < len(text))

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        from trecexam.graders.server.exchange import asked

        calls = ((prompt,) for prompt in prompts)
        # An answer is on disk before a prompt goes out in its place, see `Job`.
        batches: Iterator[list[tuple[str, WrittenText | Unwritten]]] = asked(
            self, calls, self._most, _ask, "prompts", gather=0
        )
        with naming(self.section):
            yield from batches

    def _most(self, call: tuple[str, ...]) -> Usage:
        return Usage(1, guessed(f"{self.system}{call[0]}"), self.new_tokens)

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        tokens_out = self.meter.expected_out(self.new_tokens, short=False)
        most = (self._most((prompt,)) for prompt in prompts)
        return self.taking((1, each._replace(tokens_out=tokens_out), each) for each in most)


async def _ask(
    exchange: Exchange, call: tuple[str, ...]
) -> list[tuple[str, WrittenText | Unwritten | PassingError]]:
    (prompt,) = call
    text = await exchange.ask(Request(prompt))
    if isinstance(text, Unwritten):
        text = Unwritten(f"gave no answer: it {text.reason}")
    return [(prompt, text)]
