"""The writer that a track's settings name, for test banks or for a grader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from trecexam.config import GeneratorSection, GraderSection, LanguageModelSection, Section, TrackConfig
from trecexam.config.sections import LanguageModel
from trecexam.config.track_config import purse_of
from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Meter, Usage, guessed
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.server.model import Request, Server, plain, shortened
from trecexam.graders.weights import model_folder
from trecexam.graders.writing.base import Fitted, LocalModelSettings, Writer, naming
from trecexam.graders.writing.kept_answers import AnswerFile, KeepingWriter
from trecexam.packages import missing_for_servers

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

#: Of the JSON object that an answer must be; None for any text.
Schema = Mapping[str, Any] | None
#: Tells a server that takes nothing from one that does not take a certain prompt.
_PROBE = Request("Write one question about the capital of France.")


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
        return _writer(settings, settings.name, root, system, section=section, elsewhere=config.elsewhere)


def keeping_writers(folder: TrackFolder, *writers: Writer) -> list[KeepingWriter]:
    """Return the writers with the file that keeps a track's answers, which is read once.

    Args:
        writers: those of a track share a purse; none for the one that the settings name.

    Raises:
        GraderError: none is named, or it cannot run here.
        TrecexamError: the file cannot be read.
    """
    chosen = writers or (create_writer(folder.config, folder.root),)
    file = AnswerFile(folder.answers_path, writing_purse(folder))
    return [KeepingWriter(writer, file) for writer in chosen]


def used_by_writers(folder: TrackFolder) -> tuple[Usage, float | None]:
    """Return what writing took in all, as test banks; and the money, by the prices that are set now."""
    used, cost = AnswerFile(folder.answers_path).used(), None
    with suppress(GraderError):
        cost = Meter(generator_settings(folder.config)[0]).cost(used)
    return used, cost


def writing_purse(folder: TrackFolder) -> str:
    """Return the section whose budget pays for what is written."""
    budget_keys = folder.config.generator.model_fields_set & {"budget", "budget_tokens"}
    if budget_keys or generator_settings(folder.config)[1] == "generator":
        return "generator"
    return purse_of(folder.whole, folder.grader)


def grading_writer(settings: GraderSection, root: Path, system: str = "", schema: Schema = None) -> Writer:
    """Return the model of [grader] as a writer, for graders that read what it writes; loads no model.

    With `base_url` it is behind a server, else in the folder, or under the hub id, that `model` names.

    Args:
        system: as in `create_writer`.
        schema: of the JSON object that a server's model must answer with; None where it may write anything.

    Raises:
        GraderError: none is named, or it cannot run here; the message says what to do.
    """
    if settings.base_url is None and settings.model is None:
        raise GraderError(
            f"`{settings.name}` needs a language model: set `model` in [grader] of trecexam.toml to a folder "
            "or a hub id; or `base_url` and `model` to a server and what it calls its model"
        )
    return _writer(settings, "openai" if settings.base_url is not None else None, root, system, schema)


def _writer(
    settings: GeneratorSection | GraderSection,
    kind: str | None,
    root: Path,
    system: str,
    schema: Schema = None,
    section: str = "grader",
    elsewhere: Section | None = None,
) -> Writer:
    """Make a writer of a kind: "openai", "causal" or "seq2seq"; None for what a local model's files say."""
    if kind == "openai":
        missing = missing_for_servers()
        if missing:
            raise GraderError(f"a server cannot be asked: {missing}")
        return ServerWriter(settings, section, system=system, schema=schema)
    models = provided("models")
    missing = models.missing()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    if settings.model is None:
        raise GraderError(f"no model is set to write with: {models.how_to_get}")
    folder = model_folder(settings.model, settings.revision, root, settings.name or "", models.how_to_get)
    model = LocalModelSettings(
        kind or _kind_of(folder),
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
    memory = root / ".trecexam" / "weights.json"
    if elsewhere is None:
        writer: Writer = models.writer(model, memory, section)
    else:
        writer = provided("elsewhere").writer(model, elsewhere, memory, section)
    return writer


def _kind_of(folder: Path) -> str:
    """Return "seq2seq" for a model with an encoder. Damaged files show when the model is loaded."""
    with suppress(OSError, ValueError, AttributeError):
        if json.loads((folder / "config.json").read_bytes()).get("is_encoder_decoder"):
            return "seq2seq"
    return "causal"


class ServerWriter(Server):
    """Has a server write, several prompts at a time; errors name a `section` of trecexam.toml."""

    environment = None
    is_here = False

    def __init__(
        self, settings: GraderSection | GeneratorSection, section: str, *, system: str, schema: Schema
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

        unanswered: list[str] = []
        with naming(self.section):
            # An answer is on disk before a prompt goes out in its place, see `Job`.
            batches = asked(self, _PROBE, prompts, self._most, _ask, gather=0)
            with closing(batches):
                for results in batches:
                    passing = [text for _, text in results if isinstance(text, Unwritten) and text.passing]
                    unanswered += (text.reason for text in passing)
                    yield [(prompt, _written(text)) for prompt, text in results if text not in passing]
            self.refuse_unanswered(unanswered, "prompts")

    def _most(self, prompt: str) -> Usage:
        return Usage(1, guessed(f"{self.system}{prompt}"), self.new_tokens)

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        tokens_out = self.meter.expected_out(self.new_tokens, short=False)
        most = map(self._most, prompts)
        return self.taking((1, each._replace(tokens_out=tokens_out), each) for each in most)


async def _ask(exchange: Exchange, prompt: str) -> WrittenText | Unwritten:
    return await exchange.ask(Request(prompt))


def _written(text: WrittenText | Unwritten) -> WrittenText | Unwritten:
    if isinstance(text, WrittenText):
        if not text.refused:
            return text
        text = Unwritten(f"refused: {text.text[:200]}", refused=True)
    return text._replace(reason=f"gave no answer: it {text.reason}")
