"""The graders of a track by name: the kind, the settings, the files and the measures of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from trecexam.config import TrackConfig
from trecexam.config.file import line_of_setting
from trecexam.config.track_config import effective
from trecexam.errors import ConfigError, LackingError, MeasureError, TrackError, did_you_mean
from trecexam.folder import PROMPT_SUFFIXES, TrackFolder
from trecexam.inputs.kind import Kind
from trecexam.inputs.kinds import KINDS, kind_of_items
from trecexam.results.text import Note, rank_of

if TYPE_CHECKING:
    import ir_measures

    from trecexam.graders.prompts.model import Prompt

Line = TypeVar("Line", bound=Hashable)

#: A measure as people give it from Python: its name, or an ir_measures.Measure; one of these, or several.
MeasureLike: TypeAlias = "str | ir_measures.Measure"
Measures: TypeAlias = "MeasureLike | Sequence[MeasureLike]"

#: The grader of a track that names none; people's ratings in its place are in overrides.tsv.
ONLY = "rubric"
#: A measure of one grader, as tracks with several graders have it: `support:SupportF1`.
_GRADER_MEASURE = re.compile(r"([\w-]+):([^\d\W].*)")
#: Graders without a prompt.
_WITHOUT_PROMPT = ("embedding", "recorded")


def open_folder(root: Path | str, grader: str | None = None) -> TrackFolder:
    """Open the folder of a track with the settings and files of one grader; None for the first."""
    return folder_of(TrackFolder.open(root), grader)


def grader_names(folder: TrackFolder) -> tuple[str, ...]:
    """Return the names of the graders, in the order of trecexam.toml."""
    return tuple(folder.whole.graders) or (ONLY,)


def split_measure(folder: TrackFolder, measure: str) -> tuple[str | None, str]:
    """Split `NAME:MEASURE` into grader (None if missing) and measure, or raise a TrackError."""
    match = _GRADER_MEASURE.fullmatch(measure)
    if match is None:
        return None, measure
    (name, rest), names = match.groups(), grader_names(folder)
    if name in names and rest.partition(":")[0] not in names:
        return name, rest
    hint = did_you_mean(name, names, f"there is {', '.join(names)}")
    reason = f": no grader '{name}' in this track; {hint}"
    if name in names:
        reason = f" begins with two names of graders: write {rest}"
    raise TrackError(f"measure '{measure}'{reason}", path=folder.config_path)


def listed(measures: Measures | None) -> list[MeasureLike] | None:
    """Return one or several measures as a list, each as it was given; None for None."""
    if measures is None:
        return None
    several = [measures] if isinstance(measures, str) or not isinstance(measures, Iterable) else [*measures]
    if not several:
        raise MeasureError("measures: name at least one, or None for the track's own")
    return several


def names_of(measures: Measures | None) -> list[str] | None:
    """Return the names of one or several measures, as ir_measures prints them; None for None."""
    each = listed(measures)
    return None if each is None else [str(measure) for measure in each]


def own_measures(folder: TrackFolder, measures: Measures) -> list[MeasureLike]:
    """Return the measures of one grader without its name; another grader's raise a TrackError."""
    own: list[MeasureLike] = []
    for measure in listed(measures) or ():
        name, rest = split_measure(folder, str(measure))
        if name not in (None, folder.grader):
            reason = f"measures of one grader are expected here: write {rest}, with --grader {name}"
            if len(grader_names(folder)) == 1:
                reason = f"this track has only one grader: write {rest}"
            raise TrackError(f"measure '{measure}': {reason}", path=folder.config_path)
        own.append(measure if name is None else rest)
    return own


def folder_of(folder: TrackFolder, name: str | None = None) -> TrackFolder:
    """Return the folder with the settings and files of one grader.

    Args:
        folder: of the track, or of another grader.
        name: None for the grader of `folder`, else the first.

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
        config=_effective(folder, name),
        grader=name,
        people=_people(folder, name),
        place="" if name == names[0] else name,
        track_config=config,
    )


def usable_folders(folder: TrackFolder) -> dict[str, TrackFolder]:
    """Return the folder of each grader by name, without graders whose settings cannot be used."""
    folders = {}
    for name in grader_names(folder):
        with suppress(ConfigError):
            folders[name] = folder_of(folder, name)
    return folders


def kind_of(folder: TrackFolder, item_kinds: frozenset[str]) -> Kind:
    """Return the kind of the grader of a folder.

    Args:
        item_kinds: kinds of items that the grader grades; they decide for the only grader of a track.

    Raises:
        ConfigError: the grader grades other items than its section says.
        LackingError: the grader has no prompt: a language model is missing.
    """
    kind = declared_kind(folder)
    if kind is None:
        return kind_of_items(item_kinds)
    if kind.item_kinds & item_kinds:
        return kind
    if folder.config.grader.name == "embedding":
        raise LackingError(
            f"`embedding` cannot grade {kind.name}: name a language model in [grader] (`name`, `model`, "
            f'`base_url`), or labels that there are in [{folder.section}] (`name = "recorded"`, '
            f'`recorded = "FILE"`)',
            path=folder.config_path,
        )
    about, expected = (" and ".join(sorted(kinds)) for kinds in (item_kinds, kind.item_kinds))
    raise _wrong(
        folder,
        f"[graders.{folder.grader}] is of the kind {kind.name}, which asks about {expected}, and its grader "
        f"asks about {about}: set another `prompt` or `kind`",
        str(folder.grader),
    )


def declared_kind(folder: TrackFolder) -> Kind | None:
    """Return the kind that a section declares; None for the only grader, whose prompt decides."""
    return None if folder.grader is None else _kind(folder, folder.grader)


def _wrong(folder: TrackFolder, reason: str, *keys: str) -> ConfigError:
    """Return the error of a setting below [graders], with its line."""
    line = line_of_setting(folder.config_path, "graders", *keys)
    return ConfigError(reason, path=folder.config_path, line=line)


def _effective(folder: TrackFolder, name: str) -> TrackConfig:
    """Return the settings of a grader: the section's, the kind's, then those of the track."""
    config, settings = folder.whole, dict[str, Mapping[str, Any]](_kind(folder, name).settings)
    section = config.graders[name]
    asks = section.name if "name" in section.model_fields_set else config.grader.name
    prompt = _prompt_named(name)
    if prompt is not None:
        settings["grader"] = {**settings.get("grader", {}), "prompt": prompt.name}
    if asks in _WITHOUT_PROMPT:
        settings.pop("grader", None)
    return effective(config, name, settings, folder.config_path)


def _kind(folder: TrackFolder, name: str) -> Kind:
    """Return the kind that a section declares by `kind`, name or prompt, or raise a ConfigError."""
    kinds, section = KINDS, folder.whole.graders[name]
    kind = name if section.kind is None else section.kind
    if kind in kinds:
        return kinds[kind]
    if section.kind is not None:
        hint = did_you_mean(kind, kinds, f"known here: {', '.join(kinds)}")
        raise _wrong(folder, f'`graders.{name}.kind` = "{kind}": no such kind; {hint}', name, "kind")
    prompt = _prompt_named(section.prompt or name)
    if prompt is None and section.prompt and Path(section.prompt).suffix.lower() in PROMPT_SUFFIXES:
        from trecexam.graders.prompts.custom import load_prompt

        prompt = load_prompt(folder.root / section.prompt)
    if prompt is None:
        reason = f"what [graders.{name}] grades is not known: set `kind` in it, one of {', '.join(kinds)}"
        raise _wrong(folder, reason, name)
    # A grader that rates each nugget on 0..5 has a rubric of nuggets; the others assign labels.
    rated = prompt.asks == "nugget" and prompt.parser != "assignment"
    return kinds[ONLY] if rated else kind_of_items({prompt.asks})


def _prompt_named(name: str) -> Prompt | None:
    """Return the published prompt of this name, in upper or lower case."""
    from trecexam.graders.prompts import published

    return {prompt_name.lower(): prompt for prompt_name, prompt in published().items()}.get(name.lower())


def _people(folder: TrackFolder, name: str) -> str:
    """Return the grader whose file of people's ratings counts for this one, or raise a ConfigError."""
    graders = folder.whole.graders
    other = graders[name].people or name
    reason = ""
    if other not in graders:
        hint = did_you_mean(other, graders, f"there is {', '.join(graders)}")
        reason = f"no such grader; {hint}"
    elif (kind := _kind(folder, name).name) != (other_kind := _kind(folder, other).name):
        reason = f"that one grades {other_kind}, this one {kind}"
    if reason:
        raise _wrong(folder, f'`graders.{name}.people` = "{other}": {reason}', name, "people")
    return other


def of_grader(name: str, note: str) -> Note:
    """Return the note with the grader's name in front."""
    return Note(f"{name}: {note}", rank_of(note))


def each_once(lines_by_name: Mapping[str, Sequence[Line]], named: Callable[[str, Line], Line]) -> list[Line]:
    """Return the distinct lines of several graders, each with the names of its graders.

    Lines of all graders come first, without names.
    """
    names: dict[Line, list[str]] = {}
    for name, lines in lines_by_name.items():
        for line in dict.fromkeys(lines):
            names.setdefault(line, []).append(name)
    shared = [line for line in names if 1 < len(names[line]) == len(lines_by_name)]
    return [*shared, *(named(", ".join(names[line]), line) for line in names if line not in set(shared))]
