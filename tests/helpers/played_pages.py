"""Commands of a page are run, and what they print is what the page shows.

A block ```console has lines `$ trecexam ...`, each followed by its output. In other pages a block ```text that
follows a block ```sh is the output of that block. Output is that of a terminal of 100 columns: stderr and stdout
as they come. `python tests/helpers/played_pages.py` writes the output into the pages.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
DL19 = ROOT.parent / "shared" / "dl19"
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_SHELL_TEXT = re.compile(r"^```sh\n(?P<lines>(?:(?!^```).*\n)*?)```\n\n```text\n(?:(?!^```).*\n)*?```$", re.M)


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def played(text: str, folder: Path) -> str:
    """The page with the output that its commands have in this folder, run one after the other."""
    with contextlib.chdir(folder):
        text = _CONSOLE.sub(lambda match: f"```console\n{_console(match[1])}```", text)
        return _SHELL_TEXT.sub(
            lambda match: f"```sh\n{match['lines']}```\n\n```text\n{_shell(match)}```", text
        )


def _console(block: str) -> str:
    lines = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{printed(line.removeprefix('$ '))}" for line in lines)


def _shell(match: re.Match[str]) -> str:
    return "".join(printed(line) for line in match["lines"].splitlines() if line.startswith("trecexam "))


def printed(line: str) -> str:
    """What a command line prints; `| head -n N` at its end is understood."""
    from trecexam.cli.main import run

    line, _, most = line.partition(" | head -n ")
    words = shlex.split(line, comments=True)
    assert words[0] == "trecexam", line
    buffer = io.BytesIO()
    stdout = io.TextIOWrapper(buffer) if most else _Terminal(buffer)
    stderr = io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        run(words[1:])
    texts = []
    for stream in (stderr, stdout):
        stream.flush()
        assert isinstance(stream.buffer, io.BytesIO)
        texts.append(stream.buffer.getvalue().decode())
    if most:
        texts[1] = "".join(texts[1].splitlines(keepends=True)[: int(most)])
    return "".join(f"{each.rstrip()}\n" for each in "".join(texts).splitlines())


@contextlib.contextmanager
def terminal() -> Iterator[None]:
    """The width and the colours that pages show."""
    with mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}):
        yield


def readme_folder(folder: Path) -> None:
    """Nothing: the README makes the demo track itself."""


def dl19_folder(folder: Path) -> None:
    """What TREC hands out, by the name `downloads`."""
    (folder / "downloads").symlink_to(DL19)


def wrong_folder(folder: Path) -> None:
    """A desk on which things go wrong."""
    from trecexam.demo import make_demo_track

    make_demo_track(folder / "mytrack")
    runs = folder / "mytrack" / "runs"
    (runs / "mine.run").write_text((runs / "bm25.run").read_text().replace("bm25", "mine") + "q01 Q0 d1\n")
    shutil.copy(folder / "mytrack" / "qrels.txt", folder / "qrels.txt")
    (folder / "bad.run").write_text("q01 Q0 d1 1 high mine\n")


#: Page -> what lays out the folder that its commands are run in.
PAGES = {
    "README.md": readme_folder,
    "examples/reproduce-dl19.md": dl19_folder,
    "examples/if-something-goes-wrong.md": wrong_folder,
}


def play(name: str, folder: Path) -> str:
    """The page as it should be."""
    PAGES[name](folder)
    with terminal():
        return played((ROOT / name).read_text(), folder)


def main(names: list[str]) -> None:
    """Writes the output into the pages, or into those that are named."""
    for name in names or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / name).write_text(play(name, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
