"""`trecexam pack`, `trecexam reproduce` and `trecexam merge`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import output_path, whole_track_argument
from trecexam.cli.reading import say, writing

if TYPE_CHECKING:
    from trecexam.tables.result import Result

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: trecexam pack mytrack -o paper.trecexam")
@whole_track_argument
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    callback=output_path,
    help="Write this pack; an existing file is replaced.",
)
@click.option("--texts", is_flag=True, help="Pack the texts of passages, too [default: their digests].")
def pack(track: Path, output: Path, texts: bool) -> int:
    """Pack everything that TRACK's numbers are computed from into one file.

    The file has the inputs, the bank, every raw answer with its grader and environment, people's ratings,
    settings, versions, and the digests of out/. `trecexam reproduce` computes out/ again from it. No model
    runs.
    """
    with trecexam.open_track(track) as opened:
        say(opened.pack(output, texts=texts))
    return 0


@click.command(epilog="Example: trecexam reproduce paper.trecexam --texts collection/")
@click.argument("file", type=_FILE, metavar="PACK")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    callback=output_path,
    help="Make the track in this folder, new or empty [default: PACK's name without its ending].",
)
@click.option(
    "--texts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Take texts that are not in the pack from the passage files in this folder, checked by digest.",
)
@writing
def reproduce(file: Path, output: Path | None, texts: Path | None) -> tuple[Result, int]:
    """Make a track from PACK, compute its numbers again, and compare.

    Reports for each file of out/ whether it is the same, differs (and why), or is missing. A terminal shows
    those that are not the same; --wide shows all. No model runs, and nothing is downloaded. Exit status: 0
    if all files are the same, else 1.
    """
    from trecexam.extensions.pack.reproducing import reproduce as reproduced

    done = reproduced(file, output, texts=texts)
    return done, 0 if done.reproduced else 1


@click.command(epilog="Example: trecexam merge a.trecexam b.trecexam -o both.trecexam")
@click.argument("files", type=_FILE, metavar="PACK...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=_FILE,
    required=True,
    metavar="FILE",
    callback=output_path,
    help="Write this pack; an existing file is replaced.",
)
@writing
def merge(files: tuple[Path, ...], output: Path) -> tuple[Result, int]:
    """Join the answers of several packs into one; the track is that of the first pack.

    Lists conflicts: different answers of one grader to one cell. The first answer counts; the others stay in
    the pack. Exit status: 0, or 1 if there are conflicts.
    """
    from trecexam.extensions.pack.merging import merge as merged

    done = merged(files, output)
    return done, 1 if done.rejected else 0
