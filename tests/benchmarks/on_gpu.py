"""All GPU measurements: tests/gpu, speed of grading, `embedding`.

python tests/benchmarks/on_gpu.py [--device cuda] [--shape large] [--out FILE.md]

Without a GPU, `--device cpu --shape tiny --out FILE.md` shows that it runs; the file says what was not
measured. What a bare machine needs for it: tests/gpu/carry.sh.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def ran(*words: str) -> tuple[bool, str]:
    """Whether a command ended well, and what it wrote."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode == 0, (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", default="large")
    parser.add_argument("--prompts", type=int, help="[default: 20,000 on a GPU, else 40]")
    parser.add_argument("--dl19", type=Path, help="Folder with TREC DL 2019; without it: random words.")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "language-gpu.md")
    given = parser.parse_args()
    gpu = given.device.startswith("cuda")
    prompts = given.prompts or (20_000 if gpu else 40)
    common = ["--device", given.device, *(["--dl19", str(given.dl19)] if given.dl19 else [])]
    shape = ["--shape", given.shape]
    parts = ["# Language models and `embedding` on a GPU\n"]
    if not gpu:
        parts.append(
            f"**A dry run on {given.device}: nothing here was measured on a GPU.** Not measured: tests/gpu, "
            "prompts a second against 2,000 (H200) or 1,300 (H100), the share of the floor against 55%, the "
            "ratio to the published way against 50.\n"
        )
    else:
        well, text = ran("-m", "pytest", "-q", "-m", "gpu", "tests/gpu")
        parts.append(f"`tests/gpu`: {'passed' if well else 'FAILED'}\n\n```\n{text[-4000:]}\n```\n")
    texts = "20000" if gpu else "40"
    benchmarks = (
        ("language_speed.py", *shape, "--prompts", str(prompts)),
        ("embedding_speed.py", "--texts", texts, "--passages", texts),
    )
    failed = False
    for name, *words in benchmarks:
        well, text = ran(f"tests/benchmarks/{name}", *common, *words)
        failed |= not well
        # Headings of parts are under that of the whole.
        parts.append(
            text.replace("# ", "## ", 1) if well else f"`{name}` failed:\n\n```\n{text[-4000:]}\n```"
        )
        parts.append("")
        # A machine that is lent may go before all is done.
        given.out.write_text("\n".join(parts))
    print(given.out.read_text())
    sys.exit(failed)
