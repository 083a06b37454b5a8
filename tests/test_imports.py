from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

#: From upstream to downstream; a module may import from its own group and from those before it.
LAYERS = (
    ("converters",),
    ("trecexam.errors",),
    ("trecexam.templates",),
    ("trecexam.config",),
    ("trecexam.track",),
    ("trecexam.bank",),
    ("trecexam.line.pool", "trecexam.line.store", "trecexam.scaffold"),
    ("trecexam.graders",),
    ("trecexam.irt",),
    ("trecexam.scores",),
    ("trecexam.reports",),
    ("trecexam.line.run_names", "trecexam.files.stamps"),
    ("trecexam.line.texts", "trecexam.line.dropped_files", "trecexam.line.judged_answers"),
    ("trecexam.files.cache", "trecexam.line.dropped_runs"),
    ("trecexam.line.inputs", "trecexam.line.value_cache", "trecexam.line.overrides"),
    ("trecexam.line.gradebook",),
    ("trecexam.pipeline", "trecexam.stages"),
    ("trecexam.watching",),
    ("trecexam.track_methods",),
    ("trecexam.api", "trecexam.daemon"),
    ("trecexam.serving",),
    ("trecexam.cli", "trecexam.__main__"),
)
#: What these may not know of, though it is upstream.
FORBIDDEN = {
    "trecexam.irt": (
        "converters",
        "trecexam.graders",
        "trecexam.line.store",
        "trecexam.config",
        "trecexam.track",
    ),
    "trecexam.scores": ("trecexam.graders", "trecexam.line.store", "trecexam.config", "trecexam.track"),
    "trecexam.graders": ("trecexam.line.store", "trecexam.line.pool"),
    "trecexam.reports": ("trecexam.line.store", "trecexam.graders", "trecexam.config"),
}
MODULES = sorted(path for package in ("converters", "trecexam") for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def layer(module: str) -> int:
    for depth, names in enumerate(LAYERS):
        if any(module == name or module.startswith(name + ".") for name in names):
            return depth
    raise AssertionError(f"{module} has no place in LAYERS")


def imported(path: Path) -> set[str]:
    """Every module of ours that a file imports, also inside functions and for type checking."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                file = ROOT.joinpath(*whole.split("."))
                found.add(whole if file.with_suffix(".py").exists() or file.is_dir() else node.module)
    return {name for name in found if name.split(".")[0] in {"converters", "trecexam"}} - {"trecexam"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_only_point_upstream(path: Path) -> None:
    module = name_of(path)
    if module == "trecexam":
        return
    for other in imported(path):
        assert layer(other) <= layer(module), f"{module} imports {other}"
        for owner, banned in FORBIDDEN.items():
            if module.startswith(owner):
                assert not other.startswith(banned), f"{module} imports {other}"


@pytest.mark.parametrize(
    "code",
    [
        "import trecexam",
        "import converters",
        "from trecexam.cli.main import run; run(['--help'])",
        "from trecexam.cli.main import run; run(['leaderboard', '--help'])",
    ],
)
def test_nothing_heavy_is_imported_by_importing_or_asking_for_help(code: str) -> None:
    check = (
        f"import sys; {code}; "
        "heavy = {'torch', 'transformers', 'scipy', 'sentence_transformers', 'ir_datasets'}; "
        "heavy |= {'matplotlib', 'starlette', 'jinja2'}; "
        "heavy &= set(sys.modules); "
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
