"""`on_gpu.py` with only what a GPU machine has and what tests/gpu/carry.sh collects."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from support import ROOT

#: What such a machine has, as carry.sh says.
THERE = ("torch", "transformers", "sentence-transformers", "pytest", "hypothesis")


def _carried() -> list[str]:
    """The distributions whose wheels carry.sh takes along."""
    script = (ROOT / "tests" / "gpu" / "carry.sh").read_text()
    found = re.search(r"^needed=\((.*?)\)", script, re.S | re.M)
    assert found is not None
    return found[1].split()


def _with_requirements(names: tuple[str, ...]) -> dict[str, Distribution]:
    """These distributions and all that they need, without extras."""
    found: dict[str, Distribution] = {}
    left = list(names)
    while left:
        name = re.sub(r"[-_.]+", "-", left.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        needed = (each for each in found[name].requires or () if "extra ==" not in each)
        left += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed]
    return found


def _site(folder: Path, distributions: list[Distribution]) -> Path:
    """A folder that has these distributions alone, as links."""
    folder.mkdir()
    for each in distributions:
        for file in each.files or ():
            top = file.parts[0]
            place = Path(str(each.locate_file(top)))
            if top not in {"..", "__pycache__"} and place.exists() and not (folder / top).exists():
                (folder / top).symlink_to(place)
    return folder


@pytest.mark.slow
def test_on_gpu_runs_with_only_the_files_that_carry_sh_collects(tmp_path: Path) -> None:
    for name in THERE:
        pytest.importorskip(name.replace("-", "_"))
    of_machine = _with_requirements(THERE)
    site = _site(tmp_path / "site", [*of_machine.values(), *map(distribution, _carried())])
    # -S: nothing of this environment, neither its packages nor the trecexam that is installed here.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env = {**kept, "PYTHONPATH": f"{site}:{ROOT}", "OMP_NUM_THREADS": "1"}
    out = tmp_path / "out.md"
    words = ["--device", "cpu", "--shape", "tiny", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-S", "tests/benchmarks/on_gpu.py", *words],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    text = out.read_text()
    assert "FAILED" not in text
    speeds, agreement = (part.splitlines() for part in text.split("|---|")[1:])
    names = [line.split(" | ")[0] for line in speeds if line.startswith("| ")]
    assert names[:2] == ["| FLAN-T5-tiny", "| Llama-tiny"]
    # Without `.gpu`, which carry.sh makes, there is no embedder.
    assert names[2] in ("| MiniLM, float32", "| embedder")
    equal = [line.split(" | ")[2] for line in agreement if line.startswith("| ")]
    assert {re.sub(r"^\d+", "n", each) for each in equal if " of " in each} == {"n of 40"}
