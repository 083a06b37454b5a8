"""Extensions of the core: they declare what they add, and are found by name.

Ours are the folders of `trecexam/extensions/`. Another is a package with an entry point in the group
"trecexam.extensions", whose object is an `Extension`. What a declaration names is a string, "module:name",
and is imported when it is requested: so `--help` stays quick, and the core imports no extension.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from converters.installed import entry_points
from trecexam.errors import TrecexamError

GROUP = "trecexam.extensions"


class Command(NamedTuple):
    """A command or a group of commands.

    Attributes:
        at: "module:function" of the click command.
        line: what the help of `trecexam`, or of the group, says of it.
        group: under which heading of `trecexam --help` it stands; "" for the first commands.
    """

    at: str
    line: str = ""
    group: str = ""


@dataclass(frozen=True)
class Extension:
    """The parts of an extension. Each place is "module:name", as "trecexam_length.grader:FACTORY".

    Attributes:
        name: of the extension, for messages.
        commands: of `trecexam`, by name; "export pack" is a command of the group `export`.
        features: each a `trecexam.feature.Feature`: files in out/, sections of the report and
            of the live page, plots.
        graders: each a `trecexam.graders.Factory`, by the name that `name` in [grader] has for it.
        bank_commands: of its graders, those whose language model can write a test bank, too, and the
            command that has it written, without `trecexam`.
        settings: sections of trecexam.toml, each a subclass of `trecexam.config.Section`, by name.
        labels: what labels unjudged passages, by the names that `--labels` and `--by` take: "learned" is
            `TEACHER` of the extension learn.
        services: what is requested by a name that one extension has: "elsewhere" has graders' and writers'
            work done on other machines, "models" has language models of this process write, "answers" reads
            dropped files of whole answers (`trecexam.inputs.dropped_files.AnswersReader`), "bank_writer" has
            missing test banks written, "packs" makes tracks of packs.
    """

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    graders: Mapping[str, str] = field(default_factory=dict)
    bank_commands: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tables = (self.labels, self.graders, self.settings, self.services)
        places = [*self.features, *(at for each in tables for at in each.values())]
        for address in (*(each.at for each in self.commands.values()), *places):
            if address.count(":") != 1:
                raise TrecexamError(f"extension '{self.name}' names '{address}': give \"module:name\"")


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the installed extensions: ours by name, then others' by name.

    Raises:
        TrecexamError: one cannot be imported, or is none, or two name the same thing.
    """
    ours = import_module(GROUP)
    addresses = {name: f"{GROUP}.{name}:EXTENSION" for _, name, _ in pkgutil.iter_modules(ours.__path__)}
    addresses = dict(sorted(addresses.items()))
    for name, at, package in sorted(entry_points(GROUP)):
        if addresses.setdefault(name, at) != at:
            raise TrecexamError(
                f"two extensions are called '{name}': {addresses[name]} and {at}; uninstall one: "
                f"pip uninstall {package}"
            )
    loaded = tuple(_load(name, at) for name, at in addresses.items())
    for kind in ("commands", "graders", "settings", "labels", "services"):
        names: dict[str, str] = {}
        for extension in loaded:
            for name in getattr(extension, kind):
                other = names.setdefault(name, extension.name)
                if other != extension.name:
                    raise TrecexamError(
                        f"the extensions '{other}' and '{extension.name}' both have '{name}' in `{kind}`: "
                        "uninstall one"
                    )
    return loaded


def commands_below(prefix: str) -> dict[str, Command]:
    """Return the commands of extensions whose names have a prefix, by the rest of their names."""
    declared = (each for extension in extensions() for each in extension.commands.items())
    below = {name.removeprefix(prefix): command for name, command in declared if name.startswith(prefix)}
    return {name: command for name, command in below.items() if " " not in name}


def label_sources() -> tuple[str, ...]:
    """Return what labels passages, by the names that `--labels` and `--by` take; the grader first."""
    return ("grader", *(name for extension in extensions() for name in extension.labels))


def named(at: str) -> Any:
    """Return the object at "module:name"."""
    module, _, name = at.partition(":")
    return getattr(import_module(module), name)


def provided(service: str) -> Any:
    """Return the service of this name ("models"); None where no extension has it."""
    return next((named(each.services[service]) for each in extensions() if service in each.services), None)


def label_source(name: str) -> Any:
    """Return what labels passages under a name of `label_sources` other than "grader"."""
    return next(named(each.labels[name]) for each in extensions() if name in each.labels)


def _load(name: str, at: str) -> Extension:
    try:
        extension = named(at)
    except (ImportError, AttributeError) as error:
        raise TrecexamError(
            f"the extension '{name}' ({at}) cannot be loaded: {error}; install it anew, or uninstall it"
        ) from error
    if not isinstance(extension, Extension):
        raise TrecexamError(f"the extension '{name}' ({at}) is not a trecexam.extension.Extension")
    return extension
