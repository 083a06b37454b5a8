"""Runs the commands of a docs page and compares their output with the page.

A block ```console has lines `$ trecexam ...`, each followed by its output on a terminal of 100 columns.
In place of `$ trecexam serve ...` the people of the plan judge.
`python tests/helpers/played_pages.py` writes the output into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from outside import find_outside

ROOT = Path(__file__).resolve().parents[2]
DL19 = find_outside("dl19") or ROOT / "dl19"
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def played(text: str, folder: Path) -> str:
    """The page with the output of its commands in this folder, run one after the other."""
    with contextlib.chdir(folder):
        return _CONSOLE.sub(lambda match: f"```console\n{_console(match[1])}```", text)


def _console(block: str) -> str:
    lines = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{printed(line.removeprefix('$ '))}" for line in lines)


def printed(line: str) -> str:
    """The output of a command line; `| head -n N` at its end is understood."""
    from trecexam.cli.main import run

    if line.startswith("printf "):
        return subprocess.run(["sh", "-c", line], check=True, capture_output=True, text=True).stdout
    if line.startswith("trecexam serve "):
        return judged(Path(line.split()[2]))
    line, _, most = line.partition(" | head -n ")
    words = shlex.split(line, comments=True)
    assert words[0] == "trecexam", line
    # On a terminal both streams are one, in the order in which they are written.
    out, err = io.BytesIO(), io.BytesIO()
    stdout = (io.TextIOWrapper if most else _Terminal)(out, write_through=True)
    stderr = io.TextIOWrapper(err if most else out, write_through=True)
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        run(words[1:])
    shown = out.getvalue().decode().splitlines()[: int(most) if most else None]
    return "".join(f"{each.rstrip()}\n" for each in (*err.getvalue().decode().splitlines(), *shown))


def judged(folder: Path) -> str:
    """Judge each passage of the plan; nothing is printed. They differ now and then."""
    import trecexam

    plan = [line.split("\t") for line in (folder / "judging.tsv").read_text().splitlines()[1:]]
    with trecexam.open_track(folder) as track:
        labels = {(row.query_id, row.doc_id): row.relevance for row in track.qrels()}
        for n, (who, query_id, doc_id, _) in enumerate(plan):
            judgment = min((labels[query_id, doc_id] + 1) // 2 + (n % 40 == 0), 3)
            track.override(query_id, doc_id, judgment, who=who, why="read it")
    return ""


@contextlib.contextmanager
def terminal() -> Iterator[None]:
    """The width and colours of the pages."""
    with mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}):
        yield


def dl19_folder(folder: Path) -> None:
    """Downloads from TREC, under the name `downloads`."""
    (folder / "downloads").symlink_to(DL19)


def wrong_folder(folder: Path) -> None:
    """A demo track with a bad run, and incomplete tracks or tracks with a misspelled setting."""
    import trecexam

    for name in ("mytrack", "misspelled", "nobank", "nojudgments", "served"):
        trecexam.make_demo_track(folder / name)
    with trecexam.open_track(folder / "mytrack") as track:
        track.update()
    (folder / "mytrack" / "runs" / "bad.run").write_text("q01 Q0 heat-pump-01 1 high bad\n")
    for path in (*(folder / "nobank").glob("bank.*"), folder / "nojudgments" / "qrels.txt"):
        path.unlink()
    for name in ("nobank", "nojudgments"):
        recorded = '[grader]\nname = "recorded"\nrecorded = "grades.jsonl.gz"\n'
        (folder / name / "trecexam.toml").write_text(recorded)
    (folder / "served" / "trecexam.toml").write_text('[grader]\nname = "openai"\nmodel = "gpt-4o"\n')
    settings = folder / "misspelled" / "trecexam.toml"
    settings.write_text(settings.read_text().replace("depth =", "dept ="))


def organizer_folder(folder: Path) -> None:
    """A download whose judgments have holes."""
    import trecexam

    trecexam.make_demo_track(folder / "download")
    for name in ("trecexam.toml", "README.md"):
        (folder / "download" / name).unlink()


#: Page -> function that prepares the folder in which its commands run.
PAGES = {
    "examples/reproduce-dl19.md": dl19_folder,
    "examples/if-something-goes-wrong.md": wrong_folder,
    "examples/track-organizer.md": organizer_folder,
}


def play(name: str, folder: Path) -> str:
    """The page as it should be."""
    PAGES[name](folder)
    with terminal():
        return played((ROOT / name).read_text(), folder)


def main(names: list[str]) -> None:
    """Writes the output into all pages, or into the given ones."""
    for name in names or [page for page in PAGES if DL19.exists() or "dl19" not in page]:
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / name).write_text(play(name, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
