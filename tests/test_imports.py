from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support import ROOT


def test_import_contracts_hold() -> None:
    """The contracts are in pyproject.toml, `[tool.importlinter]`."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_no_help_loads_a_computing_library_and_no_import_a_heavy_one() -> None:
    """For any command or sub-command: its module is imported, and its computing libraries are not."""
    code = """
import sys
import click
from trecexam.cli.main import cli, run

def helps(group, *path):
    run([*path, "--help"])
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            helps(command, *path, name)
        else:
            run([*path, name, "--help"])

helps(cli)
computing = {"numpy", "scipy", "pyarrow", "pydantic", "ir_measures", "sqlite3", "httpx", "trecexam.track"}
computing &= {*sys.modules}
import trecexam, converters
heavy = {"torch", "transformers", "scipy", "sentence_transformers", "ir_datasets"}
heavy |= {"matplotlib", "starlette", "jinja2"}
heavy &= {*sys.modules}
sys.exit(f"imported: {computing | heavy}" if computing | heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") > 40


def test_pandas_is_not_loaded_even_if_installed(graded: Path, tmp_path: Path) -> None:
    """pyarrow imports it for many conversions."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas was imported')")
    lines = (graded / "runs" / "run1.run").read_text().splitlines(keepends=True)
    for name, space in (("backwards", " "), ("aligned", "   ")):
        (graded / "runs" / f"{name}.run").write_text("".join(reversed(lines)).replace(" ", space))
    code = (
        "import sys; from trecexam.cli.main import run; from trecexam.inputs import run_columns; "
        "run_columns.LEAST = 1; "
        "sys.exit(any(run([*command, sys.argv[1]]) for command in (['watch', '--once'], ['leaderboard'])))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", code, graded], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "aligned" in done.stdout
