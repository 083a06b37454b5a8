"""Several graders in one trecexam.toml: the settings that hold for each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from trecexam.config.graders import GraderSection
from trecexam.config.language_models import Section
from trecexam.config.sections import ScoresSection, TrackSection
from trecexam.config.track_config import TrackConfig
from trecexam.errors import ConfigError, plain_reason

S = TypeVar("S", bound=Section)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: Folders in out/ that are no grader's, and what stands before official measures where others have a name.
RESERVED = {
    "plots": "out/plots/ is in use",
    "official": "is the people's",
}
#: What is of one grader alone: in a section that all of them share nobody could tell whose it is.
_OF_ONE = {
    "track": ("unit", "pool"),
    "grader": ("prompt", "recorded", "metric", "cut_points", "soft_cuts", "citations"),
    "scores": ("min_rating", "label", "measures"),
}
#: What a model costs and which of its versions it is go with the model.
_OF_THE_MODEL = ("revision", "price_in", "price_out")


def check_several(config: TrackConfig) -> tuple[tuple[str, ...], str] | None:
    """What is wrong with the names of graders, or with what is shared beside them.

    Returns:
        Where it stands (section and key) and the reason; None where nothing is.
    """
    for name in config.graders:
        if not _NAME.fullmatch(name):
            return ("graders", name), (
                f"`[graders.{name}]`: use small letters, digits and -, at most 32, beginning with a letter"
            )
        if name in RESERVED:
            return ("graders", name), f"`[graders.{name}]`: {RESERVED[name]}; give it another name"
    first = next(iter(config.graders), None)
    if first is None:
        return None
    for section, keys in _OF_ONE.items():
        for key in keys:
            if key in getattr(config, section).model_fields_set:
                return (section, key), (
                    f"`{section}.{key}` belongs to one grader, and this track has several: put it into "
                    f"[graders.{first}], or into another of them"
                )
    return None


def effective(
    config: TrackConfig, name: str, defaults: Mapping[str, Mapping[str, Any]], path: Path
) -> TrackConfig:
    """The settings that hold for one of several graders, as a track would have them with it alone.

    What its section sets comes first, then what the shared section sets, then `defaults`, then what holds
    where nobody says anything. A section with its own `name` takes nothing of [grader]; one with a
    its own `model` takes neither prices nor revision of another one.

    Args:
        defaults: section -> key -> value: those of what is graded.
        path: of trecexam.toml, for errors.

    Raises:
        ConfigError: settings that do not go together.
    """
    grader_section = config.graders[name]
    shared = _set(config.grader)
    if "model" in grader_section.model_fields_set:
        shared = {key: value for key, value in shared.items() if key not in _OF_THE_MODEL}
    if "name" in grader_section.model_fields_set:
        shared = {}

    def made(section: type[S], which: str, of_all: Mapping[str, Any]) -> S:
        values = {**defaults.get(which, {}), **of_all, **grader_section.given(section)}
        try:
            return section.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise ConfigError(f"`{key}` in [graders.{name}]: {plain_reason(first)}", path=path) from None

    return config.model_copy(
        update={
            "track": made(TrackSection, "track", _set(config.track)),
            "grader": made(GraderSection, "grader", shared),
            "scores": made(ScoresSection, "scores", _set(config.scores)),
            "graders": {},
        }
    )


def purse_of(config: TrackConfig, name: str | None) -> str:
    """The section whose budget pays for what a grader uses, and for what is written by its model.

    Args:
        name: the grader's; None for the one of a track that names none.
    """
    if name is None or not config.graders:
        return "grader"
    fields_set = config.graders[name].model_fields_set
    return f"graders.{name}" if fields_set & {"name", "budget", "budget_tokens"} else "grader"


def _set(section: Section) -> dict[str, Any]:
    return {
        key: getattr(section, key) for key in type(section).model_fields if key in section.model_fields_set
    }
