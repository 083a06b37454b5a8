"""Our modules are imported inside functions only to defer a heavy library."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from support import ROOT

OURS = ("trecexam", "converters")
#: Slow imports, the slowest first. Prompts are not a library, but compile many long patterns.
HEAVY = (
    "torch",
    "scipy",
    "matplotlib",
    "jinja2",
    "starlette",
    "ir_measures",
    "pyarrow",
    "numpy",
    "pydantic",
    "httpx2",
    "trecexam.graders.prompts.stated",
)
#: They import what a call needs, so that a command, and an update of most tracks, do not import the rest.
CALLS = {
    "trecexam.track",
    "trecexam.track_groups",
    "trecexam.extensions.learn.outputs",
    "trecexam.extensions.ragval.extra_outputs",
}


class InnerImport(NamedTuple):
    """An import of one of our modules inside a function."""

    importer: str
    line: int
    imported: str


class Imports(NamedTuple):
    """The imports of a module at import time, and those inside functions."""

    at_once: set[str]
    later: list[tuple[int, str]]


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for top in OURS for path in sorted((ROOT / top).rglob("*.py"))}


def _named(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Our modules that an import names, and the libraries."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [str(node.module), *(f"{node.module}.{name}" for name in names)]
    if names[0].partition(".")[0] not in OURS:
        return {names[0].partition(".")[0]}
    ours = {name for name in names if name in MODULES}
    # The package that contains them is imported with them.
    return {name for name in ours if not any(other.startswith(f"{name}.") for other in ours)}


def _imports(node: ast.AST, found: Imports, *, inner: bool = False) -> Imports:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            if inner:
                found.later.extend((child.lineno, name) for name in sorted(_named(child)))
            else:
                found.at_once.update(_named(child))
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            _imports(child, found, inner=inner or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))
    return found


@cache
def _imports_of(module: str) -> Imports:
    return _imports(ast.parse(MODULES[module].read_text()), Imports(set(), []))


@cache
def _loaded(module: str) -> frozenset[str]:
    """All that is imported with this module, including the packages that contain it and the others."""
    loaded, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in loaded:
            loaded.add(name)
            waiting += [name.rpartition(".")[0]] if "." in name else []
            waiting += _imports_of(name).at_once if name in MODULES else ()
    return frozenset(loaded)


def _inner_imports() -> Iterator[InnerImport]:
    for module in MODULES:
        for line, name in _imports_of(module).later:
            if name in MODULES:
                yield InnerImport(module, line, name)


def _hidden(inner: InnerImport) -> str | None:
    """The slowest library that an import inside a function defers."""
    behind = _loaded(inner.imported) - _loaded(inner.importer)
    return next((name for name in HEAVY if name in behind), None)


def test_an_import_inside_a_function_is_allowed_only_to_defer_a_heavy_library() -> None:
    needless = [
        f"{inner.importer}:{inner.line} imports {inner.imported}"
        for inner in _inner_imports()
        if inner.importer not in CALLS and _hidden(inner) is None
    ]
    assert needless == [], "nothing heavy is behind these: import them at the top"
