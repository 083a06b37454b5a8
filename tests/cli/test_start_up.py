"""What a command costs before it does anything."""

from __future__ import annotations

import compileall
import math
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support import ROOT

import trecexam

TRECEXAM = ("-m", "trecexam")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("trecexam", "converters"):
        # Users have compiled files, too.
        assert compileall.compile_dir(ROOT / package, quiet=2)
    folder = tmp_path_factory.mktemp("start") / "demo"
    trecexam.make_demo_track(folder)
    return folder


def _cpu(arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_leaderboard_and_help_cost_little_more_than_their_libraries(demo: Path) -> None:
    commands: dict[str, Sequence[str]] = {
        "libraries": ("-c", "import numpy, pydantic, click, pyarrow.compute, ir_measures"),
        "leaderboard": (*TRECEXAM, "leaderboard", str(demo)),
        "help": (*TRECEXAM, "leaderboard", "--help"),
    }
    # In turn, since other processes slow down all three, and again if one of them was disturbed.
    least = dict.fromkeys(commands, math.inf)
    for _ in range(4):
        least = {name: min(least[name], _cpu(command)) for name, command in commands.items()}
        # 1.7 and 0.35 where measured.
        if least["leaderboard"] < 3 * least["libraries"] and least["help"] < 0.8 * least["libraries"]:
            return
    pytest.fail(str(least))


def test_a_leaderboard_and_the_demo_import_only_the_libraries_that_they_need(demo: Path) -> None:
    code = (
        "import sys; from trecexam.cli.main import run\n"
        "for command in ('leaderboard', 'demo'): run([command, sys.argv[1]]); print('modules', *sys.modules)"
    )
    command = [sys.executable, "-c", code, str(demo)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    by_command = [set(line.split()) for line in done.stdout.splitlines() if line.startswith("modules ")]
    leaderboard, whole = by_command
    assert "trecexam.track" in leaderboard
    needless = {"torch", "scipy", "matplotlib", "jinja2", "httpx2", "asyncio", "trecexam.graders.prompts"}
    needless |= {"trecexam.outputs", "trecexam.graders.server", "converters.workbench"}
    assert not leaderboard & needless
    assert {"numpy", "matplotlib"} <= whole
    heavy = {"torch", "pandas", "sklearn", "ir_datasets", "sentence_transformers", "asyncio"}
    assert not whole & (heavy | {"scipy.optimize", "scipy.stats"})
