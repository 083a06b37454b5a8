"""Reads, checks and writes trecexam.toml."""

from __future__ import annotations

import io
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.config.sections import (
    GraderSection,
    LanguageModelSection,
    NamedGrader,
    TrackSection,
    descriptions,
)
from trecexam.config.track_config import CONFIG_NAME, TrackConfig, config_class
from trecexam.errors import ConfigError, did_you_mean, plain_reason

#: What a newcomer may want to set, beside what `init` was given.
_FIRST = {
    "track": ("depth", "pool_judged"),
    "grader": ("name",),
    "scores": ("min_rating", "measures", "min_relevant"),
}
#: The same beside [graders.NAME], where `min_rating` and `measures` are.
_FIRST_OF_SEVERAL = _FIRST | {"grader": ("name", "budget"), "scores": ("min_relevant",)}
#: Characters of a line of a comment.
_WIDTH = 100
_GRADER_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: A folder in out/ that is no grader's, and what stands before official measures where others have a name.
_RESERVED = ("plots", "official")
#: What is of one grader alone: in a section that all of them share nobody could tell whose it is.
_OF_ONE = {
    "track": ("unit", "pool"),
    "grader": ("prompt", "recorded", "metric", "cut_points", "citations"),
    "scores": ("min_rating", "label", "measures"),
}
_MAY_HOLD_A_KEY = frozenset({"base_url", "key_env", "extra", "headers", "query"})


def load_config(path: Path) -> TrackConfig:
    """Read and check a trecexam.toml.

    Raises:
        ConfigError: with path and line; an unknown key names the nearest known one.
    """
    try:
        text = _text(path)
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError(
            f"not a track folder: no {CONFIG_NAME}; make one with `trecexam init`", path=path.parent
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        position = re.search(r"\(at line (\d+)", str(error))
        line = int(position[1]) if position else None
        is_text = isinstance(error, tomllib.TOMLDecodeError)
        reason = f"not valid TOML: {error}" if is_text else "not UTF-8: save the file as UTF-8"
        raise ConfigError(reason, path=path, line=line) from None
    except RecursionError:
        raise ConfigError("not valid: nested too deeply", path=path) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from None
    except ConversionError as error:
        raise ConfigError(error.reason, path=path) from None
    try:
        config = config_class().model_validate(data)
    except ValidationError as error:
        raise _explain(error, path, text) from None
    _check_graders(config, path, text)
    return config


def _check_graders(config: TrackConfig, path: Path, text: str) -> None:
    """Refuse wrong names of graders, and shared settings that belong to one grader."""
    for name in config.graders:
        if not _GRADER_NAME.fullmatch(name) or name in _RESERVED:
            how = "use small letters, digits and -, at most 32, beginning with a letter"
            reason = f"`[graders.{name}]`: {'the name is in use' if name in _RESERVED else how}"
            raise ConfigError(reason, path=path, line=_line_of(text, ("graders", name)))
    for section, keys in _OF_ONE.items() if config.graders else ():
        for key in (key for key in keys if key in getattr(config, section).model_fields_set):
            reason = (
                f"`{section}.{key}` belongs to one grader, and this track has several: put it into "
                f"[graders.{next(iter(config.graders))}], or into another of them"
            )
            raise ConfigError(reason, path=path, line=_line_of(text, (section, key)))


def line_of_setting(path: Path, *location: str) -> int | None:
    """Return the line of a section or a setting of trecexam.toml; None where there is none."""
    try:
        return _line_of(_text(path), location)
    except (OSError, UnicodeDecodeError, ConversionError):
        return None


def _text(path: Path) -> str:
    # Editors of Windows begin a file with a byte-order mark.
    with io.TextIOWrapper(open_input(path), encoding="utf-8-sig") as file:
        return file.read()


def _explain(error: ValidationError, path: Path, text: str) -> ConfigError:
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    # Of [graders.NAME] a key is the third part; what comes behind a key is a place in its value.
    location = location[: 3 if location[0] == "graders" else 2]
    line = _line_of(text, location)
    name = ".".join(location)
    if first["type"] == "extra_forbidden":
        what = "section" if len(location) == 1 else "setting"
        names = list((config_class() if what == "section" else _section(location[0])).model_fields)
        known = f"known here: {', '.join(names)}"
        if what == "section":
            known = f"that of a grader is [graders.{name}]; {known}"
        hint = did_you_mean(location[-1], names, known).replace("'", "`")
        return ConfigError(f"unknown {what} `{name}`; {hint}", path=path, line=line)
    # Where a key may have been written by mistake, what was written is not repeated.
    value = "" if location[-1] in _MAY_HOLD_A_KEY else f" = {json.dumps(first['input'], default=str)}"
    return ConfigError(f"`{name}`{value}: {plain_reason(first)}", path=path, line=line)


def _section(name: str) -> type[BaseModel]:
    """Return the model of a section."""
    section: Any = config_class().model_fields[name].annotation
    return NamedGrader if name == "graders" else section


def _line_of(text: str, location: Sequence[str]) -> int | None:
    """Find the line of a section or a key: tomllib keeps no positions."""
    whole, above = ".".join(location), ".".join(location[:-1])
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]+", line)
        if header:
            section = re.sub(r"[\"'\s]", "", header[1])
            if section == whole:
                return number
            continue
        key = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line)
        if key and (f"{section}.{key[1]}" if section else key[1]) in (whole, above):
            return number
    return None


def render_config(
    values: Mapping[str, Mapping[str, Any]],
    *,
    full: bool = True,
    comments: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return a commented trecexam.toml: `values` are set, other settings are there as comments.

    Args:
        values: section name -> setting name -> value.
        full: all settings, each with its description; else what is set, and `_FIRST`.
        comments: section name ("graders.NAME") -> what is at its head.
    """
    first = _FIRST if not values.get("graders") else _FIRST_OF_SEVERAL
    lines = [
        "# Settings of a trecexam track. A setting behind # is not set: it shows the default, or an example",
        "# where the text says what happens when it is unset.",
    ]
    if not full:
        lines.append("# There are more: `trecexam config TRACK` prints all, and what each does.")
    for section in config_class().model_fields:
        if section == "graders":
            lines += _several(values.get(section, {}), comments, full=full)
            continue
        model, section_values = _section(section), values.get(section, {})
        is_writer = issubclass(model, LanguageModelSection) and model is not GraderSection
        explained = LanguageModelSection.model_fields if full and is_writer else ()
        shared = [key for key in explained if key not in model.__annotations__]
        keys = [
            key
            for key in model.model_fields
            if full or key in section_values or key in first.get(section, ())
        ]
        if keys:
            # [judging] counts where it is there, be it empty.
            off = section == "judging" and section not in values
            lines += ["", f"# [{section}]" if off else f"[{section}]", *_comment(comments, section)]
        for key in keys:
            unset = [] if key in shared else _unset(model, key)
            if key in section_values:
                # Of what `init` was given nobody has to be told what it is.
                lines += [*(unset[:1] if full else ()), f"{key} = {toml_value(section_values[key])}"]
            else:
                lines += unset
        if shared:
            lines.append(f"# As in [grader]: {', '.join(shared)}.")
    return "\n".join(lines) + "\n"


def _unset(section: type[BaseModel], key: str) -> list[str]:
    """Return the description of a setting, and its default or an example, as comments."""
    field = section.model_fields[key]
    default = (field.examples or [""])[0] if field.default is None else field.default
    return [f"# {descriptions(section)[key]}", f"# {key} = {toml_value(default)}"]


def _comment(comments: Mapping[str, str], section: str) -> list[str]:
    return [f"# {line}" for line in wrap(comments.get(section, ""), _WIDTH)]


def _several(
    graders: Mapping[str, Mapping[str, Any]], comments: Mapping[str, str], *, full: bool
) -> Iterator[str]:
    """Yield the sections of several graders; in full their settings beside [track], [grader], [scores]."""
    shared_keys = TrackSection.model_fields.keys() - {"runs"}
    own_keys = [key for key in NamedGrader.__annotations__ if key not in shared_keys]
    if full:
        yield ""
        yield "# [graders.NAME]"
        yield "# Several graders in one track: a section for each, with what differs from [track], [grader]"
        yield "# and [scores]. It has the settings of [grader] and [scores]; bank, qrels, depth, pool, unit,"
        yield "# official_leaderboard and pool_judged of [track]; and these:"
        for key in own_keys:
            yield from _unset(NamedGrader, key)
    for name, section_values in graders.items():
        yield ""
        yield f"[graders.{name}]"
        yield from _comment(comments, f"graders.{name}")
        yield from (f"{key} = {toml_value(value)}" for key, value in section_values.items())


def toml_value(value: Any) -> str:
    """Return a string, number, boolean, list or table as TOML has it on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml_value(each)}" for key, each in value.items()) + "}"
    # JSON's strings, numbers, booleans and flat lists are TOML too.
    return json.dumps(value, ensure_ascii=False)
