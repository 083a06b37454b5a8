"""Writes the tables of the reference pages from the code: python examples/mkdocs/reference.py

A page keeps its own text. What is between `<!-- generated: NAME -->` and `<!-- end -->` is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
import ir_measures
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import converters
from converters.convert import targets
from converters.lines import head
from converters.scored_rows import has_texts
from trecexam.cli.main import cli
from trecexam.config.file import toml_value
from trecexam.config.sections import (
    GraderSection,
    LanguageModelSection,
    NamedGrader,
    ScoresSection,
    TrackSection,
    descriptions,
)
from trecexam.config.track_config import config_class
from trecexam.extension import extensions, named
from trecexam.feature import Feature
from trecexam.outputs.outputs import features
from trecexam.scores.columns.measures import MEASURES as ON_COLUMNS
from trecexam.scores.columns.measures.cover import NUGGET_SCORES, Cover
from trecexam.scores.leaderboard import RUN_COLUMNS, SCORE_COLUMNS
from trecexam.scores.measures import pool_measures

ROOT = Path(__file__).resolve().parents[2]
#: Options that many commands have: they are explained once, in the section "Output options".
SHARED = ("--json", "--wide", "--output", "--grader")
_MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DEFAULT = re.compile(r"\s*\[default: ([^\]]*)\]")
_CITED = re.compile(r"\.\. cite(?:\.(\w+))?:: (\S+)")
_URLS = {"dblp": "https://dblp.org/rec/", "arxiv": "https://arxiv.org/abs/"}


def cell(text: str) -> str:
    """The text as one cell of a Markdown table."""
    return escaped(" ".join(text.split())).replace("|", r"\|")


def escaped(text: str) -> str:
    """The text with what Markdown would read as markup behind a backslash, but for `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    marks = re.compile(r"([*<]|(?<!\w)_|_(?!\w)|\](?=[(\[]))")
    return "".join(part if part[:1] == "`" else marks.sub(r"\\\1", part) for part in parts)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, ("---",) * len(header), *rows]
    return "".join("|" + "".join(f" {each} |" if each else " |" for each in line) + "\n" for line in lines)


def commands() -> str:
    """A section for each command: its line, what it does, options with defaults, an example."""
    return "\n".join(_command(path, command) for path, command in all_commands())


def all_commands() -> Iterator[tuple[str, click.Command]]:
    """(what is typed after `trecexam`, command) of our commands and groups, in alphabetical order.

    Commands of other installed packages are left out.
    """

    def walk(group: click.Group, above: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in sorted(group.list_commands(context)):
            if f"{above}{name}" in others:
                continue
            command = group.get_command(context, name)
            assert command is not None
            yield f"{above}{name}", command
            if isinstance(command, click.Group):
                yield from walk(command, f"{above}{name} ")

    others = {
        name for each in extensions() for name, command in each.commands.items() if not is_ours(command.at)
    }
    return walk(cli, "")


def is_ours(at: str) -> bool:
    """Whether what an extension declares, "module:name", comes with trecexam, not with another package."""
    return at.startswith("trecexam.")


def _command(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"trecexam {path}")
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    paragraphs = re.split(r"\n\s*\n", (command.help or "").partition("\f")[0].strip())
    text = "\n\n".join(_paragraph(each) for each in paragraphs)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    shared = [each for each in options if is_shared(path, each)]
    rows = [_option(each, context) for each in options if each not in shared]
    example = (command.epilog or "").strip().removeprefix("Example: ")
    made = f"## trecexam {path}\n\n```text\n{usage}\n```\n\n{text}\n"
    made += "\n" + table(("option", "what it does", "default"), rows) if rows else ""
    if shared:
        names = ", ".join(f"`{each.opts[-1]}`" for each in shared)
        made += f"\n[Output options](#output-options): {names}\n"
    return made + (f"\n```text\n{example}\n```\n" if example else "")


def _paragraph(text: str) -> str:
    if text.lstrip().startswith("\b"):
        lines = [line.rstrip() for line in text.replace("\b", "").strip("\n").split("\n")]
        return "\n".join(["```text", *lines, "```"])
    return escaped(" ".join(text.split()))


def is_shared(command: str, option: click.Option) -> bool:
    """Whether it is one of the output options, which mean the same everywhere."""
    if command == "init" or option.opts[-1] not in SHARED:
        return False
    return option.opts[-1] != "--output" or option.help == _output_help()


def _output_help() -> str | None:
    leaderboard = dict(all_commands())["leaderboard"]
    return next(each.help for each in leaderboard.params if "--output" in each.opts)  # type: ignore[attr-defined]


def output_options() -> str:
    """The options that every command with a result has."""
    command = dict(all_commands())["leaderboard"]
    context = click.Context(command, info_name="trecexam leaderboard")
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = [_option(each, context) for each in options if is_shared("leaderboard", each)]
    return table(("option", "what it does", "default"), rows)


def _option(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    record = option.get_help_record(context)
    assert record is not None
    declared, text = record[0], option.help or ""
    stated = _DEFAULT.search(text)
    default = option.get_default(context)
    if option.required:
        shown = "required"
    elif stated:
        shown = stated[1]
    elif option.is_flag or isinstance(default, bool) or not isinstance(default, str | int | float):
        shown = ""
    else:
        shown = str(default)
    return f"`{declared.replace('|', chr(92) + '|')}`", cell(_DEFAULT.sub("", text)), cell(shown)


def settings() -> str:
    """A table for each section of trecexam.toml."""
    made = []
    others = {name for each in extensions() for name, at in each.settings.items() if not is_ours(at)}
    for name, field in config_class().model_fields.items():
        if name in others:
            continue
        if name == "graders":
            parents = (GraderSection, ScoresSection, TrackSection)
            keys = [key for key in NamedGrader.model_fields if _is_new(key, parents)]
            made.append(_section("graders.NAME", NamedGrader, keys))
            continue
        section = field.annotation
        assert isinstance(section, type)
        assert issubclass(section, BaseModel)
        as_in_grader = _as_in_grader(section)
        keys = [key for key in section.model_fields if key not in as_in_grader]
        made.append(_section(name, section, keys, as_in_grader))
    return "\n".join(made)


def _is_new(key: str, parents: tuple[type[BaseModel], ...]) -> bool:
    return key == "runs" or not any(key in section.model_fields for section in parents)


def _as_in_grader(section: type[BaseModel]) -> list[str]:
    if section is GraderSection or not issubclass(section, LanguageModelSection):
        return []
    own = section.__annotations__
    return [key for key in LanguageModelSection.model_fields if key not in own]


def _section(
    name: str, section: type[BaseModel], keys: list[str], as_in_grader: list[str] | None = None
) -> str:
    summary = (section.__doc__ or "").strip().split("\n\n")[0]
    made = f"## [{name}]\n\n{escaped(' '.join(summary.split()))}\n\n"
    rows = [_setting(key, section.model_fields[key], descriptions(section)[key]) for key in keys]
    made += table(("setting", "type", "default", "what it does"), rows)
    if as_in_grader:
        made += f"\nSame as in [grader](#grader): {', '.join(f'`{key}`' for key in as_in_grader)}.\n"
    return made


def _setting(key: str, field: FieldInfo, description: str) -> tuple[str, str, str, str]:
    default = "" if field.default is None else f"`{toml_value(field.default)}`"
    text = cell(description)
    if field.examples:
        text += f" Example: `{toml_value(field.examples[0])}`"
    return f"`{key}`", _type(field.annotation), default, text


def _type(annotation: Any) -> str:
    simple = {str: "text", int: "whole number", float: "number", bool: "true, false"}
    if annotation in simple:
        return simple[annotation]
    arguments = [each for each in get_args(annotation) if each is not type(None)]
    origin = get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{toml_value(each)}`" for each in arguments)
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return "table"
    return " or ".join(dict.fromkeys(_type(each) for each in arguments)) if arguments else "text"


def our_features() -> list[Feature]:
    """The features of trecexam itself; those of other installed packages are left out."""
    others = [named(at) for each in extensions() for at in each.features if not is_ours(at)]
    return [each for each in features() if not any(each is other for other in others)]


def outputs() -> str:
    """The files that features declare."""
    declared = {name: what for each in our_features() for name, (what, _) in each.files.items()}
    return table(("file", "content"), [(f"`{name}`", what) for name, what in declared.items()])


def leaderboard() -> str:
    """The columns of a leaderboard: of each run, and of each of its measures."""
    rows = []
    for column in RUN_COLUMNS:
        only = "" if column.in_table and column.in_json else "tables" if column.in_table else "JSON"
        rows.append((f"`{column.name}`", cell(column.meaning), only))
    rows += [(f"`MEASURE{end}`", meaning, "") for end, meaning in SCORE_COLUMNS.items()]
    return table(("column", "content", "only in"), rows)


def plots() -> str:
    """The plots that features declare."""
    declared = [each.joint_plots | each.plots for each in our_features()]
    rows = [(f"`{name}`", cell(what)) for each in declared for name, (what, _) in each.items()]
    return table(("plot", "what it shows"), rows)


def pipes(text: str) -> str:
    """The text as it stands in a table."""
    return text.replace("|", r"\|")


def formats() -> str:
    """The formats that are registered."""
    rows = []
    for known in converters.formats():
        written = known.written_as or "yes" if known.write else "no"
        to = ", ".join(f"`{name}`" for name in targets(known.name))
        rows.append((f"`{known.name}`", pipes(known.description), written, pipes(known.told_by), to))
    return "".join(
        f"| {' | '.join(row)} |\n"
        for row in [("format", "read", "written", "told apart by", "converts to"), ("---",) * 5, *rows]
    ).replace("| --- | --- | --- | --- | --- |", "|---|---|---|---|---|")


def files_of_the_field() -> str:
    """Return whose files are read, and as what: each of the fuzz corpus that has a name there."""
    fuzz = ROOT / "tests" / "fuzz"
    rows = []
    for line in (fuzz / "corpus.tsv").read_text().splitlines()[1:]:
        name, whose = line.split("\t")
        path = fuzz / "corpus" / name
        kinds = [converters.sniff(path), *(("queries", "passages") if has_texts(head(path)) else ())]
        rows.append((cell(whose), ", ".join(f"`{kind}`" for kind in kinds), f"`{name}`"))
    return table(("file", "read as", "example in tests/fuzz/corpus"), rows)


def measures() -> str:
    """Every measure that a command accepts, with its parameters and its citation."""
    kinds = {each.NAME: each for _, each in sorted(ir_measures.measures.registry.items())}
    of_pool = {name.partition("(")[0]: name for name in pool_measures()}
    rows = []
    for name, kind in sorted(kinds.items(), key=lambda pair: pair[0].lower()):
        parameters = ", ".join(f"`{key}`" for key in kind.SUPPORTED_PARAMS)
        depends = "" if name not in of_pool else "yes" if of_pool[name] == name else f"`{of_pool[name]}`"
        citations = _citations(kind.__doc__ or "")
        rows.append((f"`{name}`", cell(description(kind)), parameters, depends, citations))
    return table(("measure", "what it is", "parameters", "depends on the pool", "source"), rows)


def description(kind: type[ir_measures.measures.Measure]) -> str:
    """What a measure is, in a line: SHORT_DESC, else the docstring's first line, else its name in words."""
    # Not inherited: the docstring of `Measure` describes no measure.
    docstring = (kind.__dict__.get("__doc__") or "").strip()
    choices = (
        getattr(kind, "SHORT_DESC", None),
        docstring.split("\n")[0],
        getattr(kind, "PRETTY_NAME", None),
    )
    return next((text for text in choices if text), kind.NAME)


def _citations(text: str) -> str:
    found = _CITED.findall(text)
    return ", ".join(f"[{key.split('/')[-1]}]({_URLS[at]}{key})" if at in _URLS else key for at, key in found)


def on_columns() -> str:
    """Write the parameters of each measure that trecexam computes itself."""
    rows = [(f"`{each.name}`", each.documented) for each in ON_COLUMNS.values()]
    return table(("measure", "parameters"), rows)


def nugget_scores() -> str:
    """nuggetizer's names and the measures that they are."""
    rows = [(f"`{name}@k`", f"`{Cover(**parameters)}@k`") for name, parameters in NUGGET_SCORES.items()]
    return table(("name", "measure"), rows)


#: Page -> the names of its generated parts -> what makes them.
PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "examples/formats.md": {"formats": formats, "files": files_of_the_field},
    "examples/reference/commands.md": {"output_options": output_options, "commands": commands},
    "examples/reference/files.md": {"outputs": outputs, "leaderboard": leaderboard, "plots": plots},
    "examples/reference/measures.md": {
        "measures": measures,
        "on_columns": on_columns,
        "nugget_scores": nugget_scores,
    },
    "examples/reference/settings.md": {"settings": settings},
}


def page(name: str) -> str:
    """The text of a page, its generated parts made anew.

    Raises:
        ValueError: the page lacks the marks of one of its parts, or has others.
    """
    text, parts = (ROOT / name).read_text("utf-8"), PAGES[name]
    if [part for _, part, _ in _MARKED.findall(text)] != [*parts]:
        raise ValueError(f"{name} has not the marks {', '.join(parts)}, in this order")
    return _MARKED.sub(lambda match: match[1] + parts[match[2]]() + match[3], text)


def main() -> None:
    """Writes all pages; prints those that changed."""
    for name in PAGES:
        path, text = ROOT / name, page(name)
        if path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main()
