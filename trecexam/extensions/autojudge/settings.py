"""Conversion of settings in workflow.yml to settings in trecexam.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from trecexam.config.file import toml_value
from trecexam.errors import ConfigError
from trecexam.scaffold import rag_graders

#: Values that the framework passes beside the settings.
_OF_THE_FRAMEWORK = frozenset({"filebase", "outdir", "description", "uses_llm", "corpus"})
#: The value of OPENAI_BASE_URL if no model may be called.
_OFF = frozenset({"", "EMPTY"})
_KEY = "OPENAI_API_KEY"
#: Unreachable address: the name is reserved (RFC 2606).
_NOBODY = "http://endpoint.invalid/v1"


class Endpoint(NamedTuple):
    """The model named in the environment.

    Attributes:
        base_url: None or "EMPTY" forbids calls of a model.
    """

    model: str
    base_url: str | None

    @property
    def is_off(self) -> bool:
        """True if no model may be called."""
        return (self.base_url or "") in _OFF


def track_settings(settings: Mapping[str, Any], endpoint: Endpoint) -> dict[str, dict[str, Any]]:
    """Return the settings of each section of trecexam.toml.

    Args:
        settings: settings in workflow.yml: sections of trecexam.toml, also written "section.key" as
            `auto-judge run` sets them; and values of the framework.

    Raises:
        ConfigError: a section has a plain value.
    """
    sections = _sections({key: value for key, value in settings.items() if key not in _OF_THE_FRAMEWORK})
    rag_defaults = rag_graders()
    for name, value in sections.items():
        _section(name, value)
    graders_given = sections.pop("graders", None)
    graders = dict.fromkeys(rag_defaults) if graders_given is None else graders_given
    grader: dict[str, Any] = {"name": "embedding"}
    if settings.get("uses_llm", True):
        url = _NOBODY if endpoint.is_off else endpoint.base_url
        grader = {"name": "openai", "model": endpoint.model, "base_url": url}
        if not endpoint.is_off and os.environ.get(_KEY):
            grader["key_env"] = _KEY
    return sections | {
        "track": {"queries": "queries.jsonl", **_section("track", sections.get("track"))},
        "grader": grader | _section("grader", sections.get("grader")),
        "graders": {
            name: rag_defaults.get(name, {}) | _section(f"graders.{name}", grader_settings)
            for name, grader_settings in graders.items()
        },
    }


def as_toml(sections: Mapping[str, Any]) -> str:
    """Return a trecexam.toml with these unchecked settings."""
    lines = []
    for section, values in sections.items():
        of_graders = section == "graders"
        for name, entries in values.items() if of_graders else [("", values)]:
            lines.append(f"[{section}.{toml_value(name)}]" if of_graders else f"[{section}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in entries.items() if value is not None]
    return "\n".join(lines) + "\n"


def _sections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with keys "section.key" and "graders.NAME.key" moved into their sections."""
    sections: dict[str, Any] = {}
    for key, value in settings.items():
        *path, inner = key.split(".")
        section = sections
        for depth, name in enumerate(path, 1):
            section[name] = section = _section(".".join(path[:depth]), section.get(name))
        if isinstance(value, Mapping):
            value = {**_section(key, section.get(inner)), **value}
        section[inner] = value
    return sections


def _section(name: str, values: object) -> dict[str, Any]:
    """Return a copy of a section; raise a ConfigError for a plain value."""
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"`{name}` = {values!r}: this is a section; give `{name}.SETTING`")
    return dict(values or {})
