"""Count the files and functions of ours on the way of a run file: `python tests/benchmarks/walk.py`.

Makes the demo track, and runs `trecexam watch --once` on it in this process under `sys.setprofile`, which
sees every function that is called, also in threads. `--list` prints the files, with the functions of each.
"""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[2]
OURS = (f"{ROOT / 'trecexam'}/", f"{ROOT / 'converters'}/")


def walk(arguments: list[str]) -> dict[str, set[str]]:
    """Return the functions that a command of trecexam calls, by file.

    Args:
        arguments: of the command line, without `trecexam`.

    Returns:
        File, relative to the root -> `name:line` of each function, lambda and comprehension; empty for a file
        of which only classes were made.
    """
    seen: dict[str, set[str]] = defaultdict(set)

    def enter(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS) or code.co_name == "<module>":
            return
        functions = seen[code.co_filename]
        # The body of a class is called, too, and is no function.
        if code.co_flags & inspect.CO_OPTIMIZED:
            functions.add(f"{code.co_name}:{code.co_firstlineno}")

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        from trecexam.cli.main import cli

        cli(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return {str(Path(file).relative_to(ROOT)): names for file, names in sorted(seen.items())}


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print each file with its functions")
    listed = parser.parse_args().list
    with tempfile.TemporaryDirectory() as folder:
        track = Path(folder) / "demo"
        # In a process of its own, so that the command's own imports are on its way.
        make = f"import trecexam; trecexam.make_demo_track({str(track)!r})"
        subprocess.run([sys.executable, "-c", make], check=True, cwd=ROOT)
        functions = walk(["watch", str(track), "--once"])
    for file, names in functions.items() if listed else ():
        print(f"{file}: {', '.join(sorted(names))}")
    print(f"files: {len(functions)}; functions: {sum(map(len, functions.values()))}")


if __name__ == "__main__":
    main()
