"""Every call of a track is written out in the source, and has the defaults of its command."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from command_tree import leaves
from support import ROOT

import trecexam
from trecexam.extension import extensions
from trecexam.track_groups import Group

#: Command -> its call, where that has another name.
CALLED = {
    "compare-graders": "compare_graders",
    "correlate": "correlate.__call__",
    "erag": "erag.score",
    "fill": "fill.find",
    "judge-next": "judge_next",
    "learn": "learn.labels",
    "override": "override.__call__",
    "bank check": "bank.check",
    "bank diff": "bank.diff",
    "bank generate": "bank.generate",
    "exam fit": "exam.fit",
    "exam generate": "exam.generate",
    "exam improve": "exam.improve",
    "judge agreement": "judging.agreement",
    "judge export": "judging.export",
    "judge import": "judging.take_in",
    "judge plan": "judging.plan",
    "ragval answers": "ragval.answer",
    "ragval questions": "ragval.write_questions",
    "export official": "export.official_qrels",
    "export leaderboard": "export.leaderboard_values",
    "export grades": "grades",
}
#: Options whose default is another one than that of the call: a terminal shows 20 rows.
OTHERS = {("judge-next", "top")}


@pytest.fixture
def calls(small_track: Path) -> dict[str, Callable[..., Any]]:
    """Each public call of a track, and of a group of calls as `verify.grid`."""
    with trecexam.open_track(small_track) as track:
        properties = [name for name, made in vars(trecexam.Track).items() if isinstance(made, property)]
        groups = {name: type(getattr(track, name)) for name in properties}
    owners = {f"{name}.": kind for name, kind in groups.items() if issubclass(kind, Group)}
    return {
        f"{prefix}{name}": call
        for prefix, kind in {"": trecexam.Track, **owners}.items()
        for name, call in inspect.getmembers(kind, inspect.isfunction)
        if name == "__call__" or not name.startswith("_")
    }


def nothing(value: object) -> bool:
    """Return True for a default that stands for an option that is not given."""
    return value is None or value is False or value in ((), "", 0, "0") or "UNSET" in repr(value)


def test_an_option_has_the_default_of_the_call_of_its_command(calls: dict[str, Callable[..., Any]]) -> None:
    compared, differ = set(), {}
    for words, command in leaves():
        name = " ".join(words)
        call = calls.get(CALLED.get(name, name.replace(" ", ".")))
        for option in command.params if call is not None else ():
            parameter = inspect.signature(call).parameters.get(option.name or "")
            if parameter is None or isinstance(option, click.Argument) or (name, option.name) in OTHERS:
                continue
            compared.add(name)
            default = None if parameter.default is inspect.Parameter.empty else parameter.default
            # An option that is not given leaves the default to the call.
            if option.default != default and not nothing(option.default):
                differ[f"{name} {option.opts[0]}"] = (option.default, default)
    assert differ == {}
    assert len(compared) > 20
    assert {*CALLED.values()} <= calls.keys()


def test_every_call_is_documented_and_defined_in_the_class_that_has_it(
    calls: dict[str, Callable[..., Any]],
) -> None:
    assert len(calls) > 60
    assert [name for name, call in calls.items() if not call.__doc__] == []
    for name, call in calls.items():
        assert call.__qualname__.endswith(f".{name.rpartition('.')[2]}"), name
        assert "self" in inspect.signature(call).parameters


#: Names of extensions that are words of the core's own.
WORDS = frozenset({"banks", "check", "cluster", "items", "pack", "page", "support"})
#: Where the core names an extension all the same: the public names `trecexam.evaluate` and
#: `trecexam.pyterrier`, language models of settings, and the command that wrote learned.qrels.
NAMING = {
    "trecexam/__init__.py": {"evaluate"},
    "trecexam/pyterrier.py": {"libraries"},
    "trecexam/config/sections.py": {"causal", "seq2seq"},
    "trecexam/graders/writing/create.py": {"causal", "seq2seq"},
    "trecexam/inputs/sources.py": {"learn"},
}


def test_only_the_track_names_extensions() -> None:
    """As modules, attributes, strings or sections of settings; sentences may name their commands."""
    ours = [each for each in extensions() if (ROOT / "trecexam" / "extensions" / each.name).is_dir()]
    names = {name for each in ours for name in (each.name, *each.graders, *each.settings)} - WORDS
    core = [path for top in ("trecexam", "converters") for path in (ROOT / top).rglob("*.py")]
    naming: dict[str, set[str]] = {}
    for path in core:
        source = path.read_text()
        if "extensions" in path.parts or path.name in ("track.py", "track_groups.py"):
            continue
        # Parsing takes long.
        if not names & {*re.findall(r"\w+", source)} and "trecexam.extensions" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            texts = (getattr(node, key, None) for key in ("value", "attr", "arg", "name", "module"))
            for text in texts:
                module = re.search(r"trecexam\.extensions\.(\w+)", text) if isinstance(text, str) else None
                if isinstance(text, str) and (text in names or module):
                    name = module[1] if module else text
                    naming.setdefault(path.relative_to(ROOT).as_posix(), set()).add(name)
    assert len(names) > 12
    assert naming == NAMING
