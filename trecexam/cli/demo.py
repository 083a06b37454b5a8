"""`trecexam demo`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli.reading import answer
from trecexam.cli.watch import print_update, update_once
from trecexam.errors import quoted
from trecexam.results.text import plural


@click.command(epilog="Example: trecexam demo mydemo")
@click.argument(
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="[FOLDER]",
    default=Path("trecexam-demo"),
    required=False,
)
@click.option(
    "--grade",
    is_flag=True,
    help="Grade with the sentence embedder of the extra `offline` instead of recorded ratings.",
)
@click.option(
    "--rag",
    is_flag=True,
    help="Make a RAG track: four graders for nuggets, support, retrieval and coverage.",
)
def demo(folder: Path, grade: bool, rag: bool) -> int:
    """Make a small graded track in FOLDER [default: trecexam-demo] and print its leaderboard.

    The track comes with the program and needs no network: eight queries, seven runs, judgments, and a bank
    of 48 questions with recorded ratings. Run it again to restore missing files and grade new ones; files
    that you edited stay.
    """
    # Imports pydantic, which --help must not load.
    from trecexam.demo import make_demo_track

    made = make_demo_track(folder, grade=grade, rag=rag)
    if made:
        click.echo(f"created {folder} ({plural(len(made), 'file')}, see {folder / 'README.md'})", err=True)
    with trecexam.open_track(folder) as opened:
        update, caught = update_once(opened)
        board = None if caught else opened.leaderboard()
    status = print_update(opened, update, caught, () if board is None else board.notes)
    if board is None:
        return status
    track = quoted(folder)
    answer(board, all_in=f"`trecexam leaderboard {track} --json`")
    following = (
        (f"correlate {track}", "how far this agrees with the official judgments"),
        (f"compare {track}", "which runs really differ"),
        (f"watch {track}", f"continues; drop runs into {folder / 'runs'}"),
        ("init --help", "a track of your own files"),
    )
    width = max(len(command) for command, _ in following)
    report = (folder / "out" / "report.html").resolve()
    click.echo(f"\nreport: {report}\nnext:", err=True)
    for command, what in following:
        click.echo(f"  trecexam {command:<{width}}  {what}", err=True)
    return status
