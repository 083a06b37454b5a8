"""Cost of a second grader on the same pool: CPU seconds and peak memory of an update with one and two.

    python tests/benchmarks/several_graders.py TRACK

TRACK is a track with one grader whose cells are all graded, for example from `update_cost.py --work FOLDER`
in FOLDER/pristine/A/track. It is copied; the second grader is the first at another min_rating: no model runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURE = """
import json, resource, sys, time, trecexam
begun = time.process_time()
with trecexam.open_track(sys.argv[1]) as track:
    track.update()
print(json.dumps([time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def with_two(settings: str) -> str:
    """The settings with the grader as two sections."""
    sections = tomllib.loads(settings)
    own = sections.pop("grader", {}) | sections.pop("scores", {})
    named = {"graders.rubric": own, "graders.second": own | {"kind": "rubric", "min_rating": 3}}
    lines: list[str] = []
    for name, values in (sections | named).items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        for name in ("one", "two"):
            root = Path(shutil.copytree(sys.argv[1], Path(temporary) / name))
            shutil.rmtree(root / "out", ignore_errors=True)
            if name == "two":
                path = root / "trecexam.toml"
                path.write_text(with_two(path.read_text()))
            done = subprocess.run(
                [sys.executable, "-c", MEASURE, str(root)],
                capture_output=True,
                text=True,
                check=True,
                cwd=ROOT,
            )
            seconds, peak = json.loads(done.stdout)
            print(f"{name}: {seconds:.2f} CPU s, peak {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
