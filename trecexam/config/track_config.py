"""trecexam.toml as a whole, and the settings that hold for one of several graders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field, ValidationError, create_model

from trecexam.config.sections import (
    CellsSection,
    GeneratorSection,
    GraderSection,
    JudgingSection,
    NamedGrader,
    ReportPageSection,
    ScoresSection,
    Section,
    TrackSection,
    WatchSection,
)
from trecexam.errors import ConfigError, plain_reason
from trecexam.extension import extensions, named

CONFIG_NAME = "trecexam.toml"
S = TypeVar("S", bound=Section)
#: What a model costs and which of its versions it is go with the model.
_OF_THE_MODEL = ("revision", "price_in", "price_out")


#: Of a section that trecexam.toml does not have: its defaults are filled in when the whole is read.
_DEFAULTS: Any = Field({}, validate_default=True)


class TrackConfig(Section):
    """A whole trecexam.toml."""

    track: TrackSection = _DEFAULTS
    grader: GraderSection = _DEFAULTS
    graders: dict[str, NamedGrader] = {}  # noqa: RUF012 - pydantic copies it
    scores: ScoresSection = _DEFAULTS
    report: ReportPageSection = _DEFAULTS
    cells: CellsSection = _DEFAULTS
    watch: WatchSection = _DEFAULTS
    generator: GeneratorSection = _DEFAULTS
    judging: JudgingSection = _DEFAULTS

    def values(self, *, work: bool = False, exclude_none: bool = False) -> dict[str, Any]:
        """Return the settings that change values in out/, ready for JSON.

        Args:
            work: also those that change the work of an update, see `Section.changes`.
            exclude_none: without settings that are unset.
        """
        left_out = ("nothing",) if work else ("nothing", "work")
        kinds = {name: field.annotation for name, field in type(self).model_fields.items()}
        exclude = {name for name, kind in kinds.items() if getattr(kind, "changes", "values") in left_out}
        exclude |= {"judging"} - self.model_fields_set | ({"graders"} if not self.graders else set())
        return self.model_dump(mode="json", exclude=exclude, exclude_none=exclude_none)

    def section(self, kind: type[S]) -> S:
        """The section of trecexam.toml that an extension declares; its defaults where it is not there."""
        for name, declared in type(self).model_fields.items():
            if declared.annotation is kind:
                section: S = getattr(self, name)
                return section
        return kind()

    @property
    def has_writer(self) -> bool:
        """True where [generator] or [grader] names a language model that can write test banks."""
        writer = self.generator
        is_named = (writer.name, writer.model, writer.base_url) != (None, None, None)
        return is_named or self.grader.name in bank_commands()

    @property
    def elsewhere(self) -> Section | None:
        """The section of the cluster that does the work of models; None where this process does."""
        sections = (getattr(self, name) for name in type(self).model_fields)
        return next((each for each in sections if isinstance(each, Section) and each.is_cluster), None)

    def suited(self, scores: Mapping[str, Any], max_rating: int, min_rating: int, path: Path) -> TrackConfig:
        """Fill in what trecexam.toml does not set in [scores], for the scale 0..`max_rating`."""
        defaults = {"min_rating": min_rating, **scores}
        unset = defaults.keys() - self.scores.model_fields_set
        suited = self.scores.model_copy(update={key: defaults[key] for key in unset})
        if suited.min_rating > max_rating:
            raise ConfigError(
                f"`scores.min_rating` = {suited.min_rating}: the grader's prompt rates 0..{max_rating}; "
                f"set {min_rating}, or leave it out",
                path=path,
            )
        return self.model_copy(update={"scores": suited})

    def measures(self) -> list[str]:
        """The rubric measures, in leaderboard order."""
        if self.scores.measures is not None:
            return list(dict.fromkeys(self.scores.measures))
        k, t = self.track.depth, self.scores.min_rating
        rel = 1 if self.scores.label == "count" else t
        # Those that do not depend on the pool come first: the first one orders the runs.
        return [
            f"P(rel={rel})@{k}",
            *([f"ECover(rel={t})@{k}"] if self.scores.label == "expected" else []),
            f"Cover(rel={t})@{k}",
            f"nDCG@{k}",
            f"AP(rel={rel})",
            f"nCover(rel={t})@{k}",
            # ndeval computes its measures down to rank 20 only.
            f"alpha_nDCG@{min(k, 20)}",
        ]

    def official_measures(self, threshold: int | None = None) -> list[str]:
        """Return the measures on the official judgments, with `threshold` in place of `min_relevant`."""
        if self.scores.official_measures is not None:
            return list(dict.fromkeys(self.scores.official_measures))
        least = self.scores.min_relevant if threshold is None else threshold
        rel = f"(rel={least})" if least > 1 or "min_relevant" in self.scores.model_fields_set else ""
        return ["nDCG@10", f"AP{rel}", f"P{rel}@{self.track.depth}"]


def effective(
    config: TrackConfig, name: str, defaults: Mapping[str, Mapping[str, Any]], path: Path
) -> TrackConfig:
    """Return the settings of one of several graders, as a track would have them with it alone.

    The grader's section comes first, then the shared section, then `defaults` (section -> key -> value, of
    the kind of grading). A section with its own `name` takes nothing of [grader]; one with its own `model`
    takes neither prices nor revision of another model.
    """
    grader_section = config.graders[name]
    shared = config.grader.model_dump(exclude_unset=True)
    if "model" in grader_section.model_fields_set:
        shared = {key: value for key, value in shared.items() if key not in _OF_THE_MODEL}
    if "name" in grader_section.model_fields_set:
        shared = {}

    def made(section: type[S], which: str, of_all: Mapping[str, Any]) -> S:
        # The drop folder is shared, and is no setting of a grader.
        own = grader_section.model_dump(exclude_unset=True, include=section.model_fields.keys() - {"runs"})
        values = {**defaults.get(which, {}), **of_all, **own}
        try:
            return section.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise ConfigError(f"`{key}` in [graders.{name}]: {plain_reason(first)}", path=path) from None

    return config.model_copy(
        update={
            "track": made(TrackSection, "track", config.track.model_dump(exclude_unset=True)),
            "grader": made(GraderSection, "grader", shared),
            "scores": made(ScoresSection, "scores", config.scores.model_dump(exclude_unset=True)),
            "graders": {},
        }
    )


def purse_of(config: TrackConfig, name: str | None) -> str:
    """Return the section whose budget pays for what a grader uses, and for what its model writes."""
    if name is None or not config.graders:
        return "grader"
    fields_set = config.graders[name].model_fields_set
    return f"graders.{name}" if fields_set & {"name", "budget", "budget_tokens"} else "grader"


@cache
def bank_commands() -> Mapping[str, str]:
    """Return the graders whose language model can write a test bank, too, and the command for that."""
    declared = (command for extension in extensions() for command in extension.bank_commands.items())
    return {"openai": "bank generate", **dict(declared)}


@cache
def config_class() -> type[TrackConfig]:
    """`TrackConfig` with the sections that extensions declare."""
    declared = {name: at for extension in extensions() for name, at in extension.settings.items()}
    clashes = sorted(declared.keys() & TrackConfig.model_fields.keys())
    if clashes:
        raise ConfigError(
            f"an extension declares the section [{clashes[0]}], which trecexam has: uninstall it"
        )
    sections: dict[str, Any] = {name: named(at) for name, at in declared.items()}
    fields: dict[str, Any] = {name: (kind, _DEFAULTS) for name, kind in sections.items()}
    made: type[TrackConfig] = create_model("TrackConfig", __base__=TrackConfig, **fields)
    return made
