"""The graders of one track by name: what each of them grades, and its part of the folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.config import TrackConfig, effective, line_of_setting
from trecexam.errors import ConfigError, LackingError, TrackError, did_you_mean
from trecexam.folder import PROMPT_SUFFIXES, TrackFolder
from trecexam.line.kind import Kind
from trecexam.line.kinds import KINDS, kind_of_items
from trecexam.line.measure_names import MeasureLike, Measures, listed

if TYPE_CHECKING:
    from trecexam.graders.prompts.model import Prompt

#: The one grader of a track that names none, and the one whose ratings by people are in overrides.tsv.
ONLY = "rubric"
#: A measure of one grader, as tracks with several graders have it: `support:SupportF1`.
_GRADER_MEASURE = re.compile(r"([\w-]+):([^\d\W].*)")
#: Those that ask no model: the prompt of a kind is not theirs.
_WITHOUT_PROMPT = ("embedding", "recorded")


def open_folder(root: Path | str, grader: str | None = None) -> TrackFolder:
    """The folder of a track as one of its graders sees it: with the settings that hold for it.

    Args:
        grader: its name; None for the first.

    Raises:
        TrackError, ConfigError: see `TrackFolder.open`; or there is no such grader.
    """
    return folder_of(TrackFolder.open(root), grader)


def grader_names(folder: TrackFolder) -> tuple[str, ...]:
    """Who grades a track, in the order of trecexam.toml."""
    return tuple(folder.whole.graders) or (ONLY,)


def own_measures(folder: TrackFolder, measures: Measures) -> list[MeasureLike]:
    """Return the measures of one grader without the grader's name: `SupportF1` for `support:SupportF1`.

    Raises:
        TrackError: a measure is another grader's. It names the graders, and says how to write the measure.
        ValueError: see `listed`.
    """
    own: list[MeasureLike] = []
    for measure in listed(measures) or ():
        match = _GRADER_MEASURE.fullmatch(str(measure))
        grader, rest = match.groups() if match else (folder.grader, measure)
        if grader != folder.grader:
            names = grader_names(folder)
            if grader not in names:
                have = "grader is" if len(names) == 1 else "graders are"
                reason = f"this track has no grader '{grader}'; its {have} {', '.join(names)}"
            elif len(names) == 1:
                reason = f"this track has only one grader: write {rest}"
            else:
                reason = f"measures of one grader are expected here: write {rest}, with --grader {grader}"
            raise TrackError(f"measure '{measure}': {reason}", path=folder.config_path)
        if match:
            refuse_two_graders(folder, str(measure), str(rest))
        own.append(rest)
    return own


def refuse_two_graders(folder: TrackFolder, measure: str, rest: str) -> None:
    """Refuse a measure with two names of graders, as in `nuggets:nuggets:all_score`.

    Args:
        rest: the measure without its first grader.

    Raises:
        TrackError: says how to write the measure.
    """
    if rest.partition(":")[0] in grader_names(folder):
        reason = f"begins with two names of graders: write {rest}"
        raise TrackError(f"measure '{measure}' {reason}", path=folder.config_path)


def folder_of(folder: TrackFolder, name: str | None = None) -> TrackFolder:
    """The track's folder with the settings and the files of one of its graders.

    Args:
        folder: of the track, or as another of its graders sees it.
        name: None for the one that it is of already, else the first.

    Raises:
        TrackError: there is no such grader.
        ConfigError: its settings do not go together.
    """
    if folder.grader is not None and name in (None, folder.grader):
        return folder
    config, names = folder.whole, grader_names(folder)
    name = names[0] if name is None else name
    if name not in names:
        hint = did_you_mean(name, names, f"there is {', '.join(names)}")
        raise TrackError(f"no grader '{name}' in this track; {hint}", path=folder.config_path)
    if not config.graders:
        return folder
    return replace(
        folder,
        config=_effective(config, name, folder.root, folder.config_path),
        grader=name,
        people=_whose_people(config, name, folder),
        place="" if name == names[0] else name,
        track_config=config,
    )


def usable_folders(folder: TrackFolder) -> dict[str, TrackFolder]:
    """The folder as each of the graders sees it, by name; without those whose settings cannot be used."""
    folders = {}
    for name in grader_names(folder):
        with suppress(ConfigError):
            folders[name] = folder_of(folder, name)
    return folders


def kind_of(folder: TrackFolder, item_kinds: frozenset[str]) -> Kind:
    """What the grader of a folder grades.

    Args:
        item_kinds: what it grades, which tells the one grader of a track is known.

    Raises:
        ConfigError: it asks about other things than its section says.
        LackingError: no prompt would help, since it has none: a language model is missing.
    """
    kind = declared_kind(folder)
    if kind is None:
        return kind_of_items(item_kinds)
    if not kind.item_kinds & item_kinds:
        about, expected_kinds = (" and ".join(sorted(kinds)) for kinds in (item_kinds, kind.item_kinds))
        if folder.config.grader.name == "embedding":
            raise LackingError(
                f"`embedding` cannot grade {kind.name}: name a language model in [grader] (`name`, `model`, "
                f'`base_url`), or labels that there are in [{folder.section}] (`name = "recorded"`, '
                f'`recorded = "FILE"`)',
                path=folder.config_path,
            )
        raise ConfigError(
            f"[graders.{folder.grader}] is of the kind {kind.name}, which asks about {expected_kinds}, and "
            f"its grader asks about {about}: set another `prompt` or `kind`",
            path=folder.config_path,
            line=line_of_setting(folder.config_path, "graders", str(folder.grader)),
        )
    return kind


def declared_kind(folder: TrackFolder) -> Kind | None:
    """The kind that a section says; None of the one grader of a track, whose prompt says it."""
    if folder.grader is None:
        return None
    return _kind(folder.whole, folder.grader, folder.root, folder.config_path)


def _effective(config: TrackConfig, name: str, root: Path, path: Path) -> TrackConfig:
    kind = _kind(config, name, root, path)
    settings: dict[str, Mapping[str, Any]] = dict(kind.settings)
    grader_section = config.graders[name]
    asks = grader_section.name if "name" in grader_section.model_fields_set else config.grader.name
    prompt = _prompt_named(name)
    if prompt is not None:
        settings["grader"] = {**settings.get("grader", {}), "prompt": prompt.name}
    if asks in _WITHOUT_PROMPT:
        settings.pop("grader", None)
    return effective(config, name, settings, path)


def _kind(config: TrackConfig, name: str, root: Path, path: Path) -> Kind:
    """The kind that a section says, by `kind`, by its name, or by its prompt.

    Raises:
        ConfigError: it says none.
    """
    kinds, grader_section = KINDS, config.graders[name]
    if grader_section.kind is not None:
        if grader_section.kind in kinds:
            return kinds[grader_section.kind]
        hint = did_you_mean(grader_section.kind, kinds, f"known here: {', '.join(kinds)}")
        line = line_of_setting(path, "graders", name, "kind")
        raise ConfigError(
            f'`graders.{name}.kind` = "{grader_section.kind}": no such kind; {hint}', path=path, line=line
        )
    if name in kinds:
        return kinds[name]
    prompt = _prompt_named(grader_section.prompt or name)
    if (
        prompt is None
        and grader_section.prompt is not None
        and Path(grader_section.prompt).suffix.lower() in PROMPT_SUFFIXES
    ):
        from trecexam.graders.prompts.custom import load_prompt

        prompt = load_prompt(root / grader_section.prompt)
    if prompt is None:
        raise ConfigError(
            f"what [graders.{name}] grades is not known: set `kind` in it, one of {', '.join(kinds)}",
            path=path,
            line=line_of_setting(path, "graders", name),
        )
    # Who rates each nugget on 0..5 has a rubric of nuggets; who assigns labels assigns nuggets.
    rated = prompt.asks == "nugget" and prompt.parser != "assignment"
    return kinds[ONLY] if rated else kind_of_items({prompt.asks})


def _prompt_named(name: str) -> Prompt | None:
    """The published prompt of this name, whatever its letters' case."""
    from trecexam.graders.prompts.published import published

    return {prompt_name.lower(): prompt for prompt_name, prompt in published().items()}.get(name.lower())


def _whose_people(config: TrackConfig, name: str, folder: TrackFolder) -> str:
    """The grader whose file of people's ratings counts for this one.

    Raises:
        ConfigError: there is no such grader, or it grades other things.
    """
    whose = config.graders[name].people
    if whose is None or whose == name:
        return name
    path = folder.config_path
    line = line_of_setting(path, "graders", name, "people")
    if whose not in config.graders:
        hint = did_you_mean(whose, config.graders, f"there is {', '.join(config.graders)}")
        raise ConfigError(
            f'`graders.{name}.people` = "{whose}": no such grader; {hint}', path=path, line=line
        )
    kinds = [_kind(config, each, folder.root, path).name for each in (name, whose)]
    if kinds[0] != kinds[1]:
        raise ConfigError(
            f'`graders.{name}.people` = "{whose}": that one grades {kinds[1]}, this one {kinds[0]}',
            path=path,
            line=line,
        )
    return whose
