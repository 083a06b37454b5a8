"""The writer that a track's settings name."""

from __future__ import annotations

from pathlib import Path

from trecexam.config import GeneratorSection, LanguageModelSection, TrackConfig
from trecexam.errors import GraderError
from trecexam.graders.seq2seq import FLAN_T5_LARGE
from trecexam.graders.writing.base import Writer, naming

_KINDS = ("openai", "causal", "seq2seq")


def generator_settings(config: TrackConfig) -> tuple[GeneratorSection, str]:
    """Who writes test banks, and the section of trecexam.toml that says so.

    Where [generator] names no model, it is the language model of [grader], asked as that is, but for what
    [generator] sets.

    Raises:
        GraderError: neither names one.
    """
    own = config.generator
    given = {key: getattr(own, key) for key in own.model_fields_set}
    if own.model is not None or own.base_url is not None or own.name is not None:
        if own.name is not None:
            return own, "generator"
        name = "openai" if own.base_url is not None else "causal"
        return own.model_copy(update={"name": name}), "generator"
    grader = config.grader
    if grader.name not in _KINDS:
        raise GraderError(
            "no language model to write with: set `name` (openai, causal or seq2seq) and `model` in "
            "[generator] of trecexam.toml"
        )
    shared = {key: getattr(grader, key) for key in LanguageModelSection.model_fields}
    if grader.name == "seq2seq" and grader.model is None:
        shared["model"] = FLAN_T5_LARGE
    return GeneratorSection.model_validate({**shared, **given}), "grader"


def create_writer(config: TrackConfig, root: Path) -> Writer:
    """The writer that a track's settings name; loads no model.

    Raises:
        GraderError: none is named, or it cannot run here; the message says what to do.
    """
    settings, section = generator_settings(config)
    with naming(section):
        if settings.name == "openai":
            return _server_writer(settings, section)
        return _local_writer(settings, section, config, root)


def _server_writer(settings: GeneratorSection, section: str) -> Writer:
    from trecexam.graders.openai import missing_packages, prices_of, server_of
    from trecexam.graders.server.messages import Form
    from trecexam.graders.writing.server import ServerWriter

    missing = missing_packages()
    if missing:
        raise GraderError(f"a server cannot be asked: {missing}")
    server = server_of(settings, logprobs=False)
    assert settings.model is not None
    form = Form(
        settings.api,
        settings.model,
        settings.max_new_tokens,
        settings.temperature,
        settings.seed,
        None,
        settings.extra,
    )
    return ServerWriter(server, form, revision=settings.revision, prices=prices_of(settings), section=section)


def _local_writer(settings: GeneratorSection, section: str, config: TrackConfig, root: Path) -> Writer:
    from trecexam.graders.language import loading
    from trecexam.graders.weights import model_folder

    missing = loading.missing_packages()
    if missing:
        raise GraderError(f"a model cannot be run: {missing}")
    if settings.model is None:
        raise GraderError(f"there is no model to write with: {loading.HOW_TO_GET}")
    assert settings.name is not None
    folder = model_folder(settings.model, settings.revision, root, settings.name, loading.HOW_TO_GET)

    from trecexam.graders.writing.local import ClusterWriter, LocalModelSettings, LocalWriter

    found = LocalModelSettings(
        settings.name,
        folder.absolute(),
        Path(settings.model).name,
        settings.temperature,
        settings.seed,
        settings.max_new_tokens,
        settings.device,
        settings.dtype,
        settings.max_batch_tokens,
    )
    memory = root / ".trecexam" / "weights.json"
    if config.ray.address is not None:
        return ClusterWriter(found, config.ray, memory, section)
    return LocalWriter(found, memory, section)
