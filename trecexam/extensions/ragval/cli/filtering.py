"""`trecexam ragval filter`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.reading import writing_or_estimating
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, not_taken, show_estimate, used
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.filtering import Knowing
    from trecexam.tables.result import Result


@click.command("filter", epilog="Example: trecexam ragval filter blocks.jsonl -o filtered --after 2023-06")
@click.argument(
    "blocks", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="BLOCKS.jsonl"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Write kept.jsonl, dropped.jsonl and stats.json into this folder.",
)
@click.option(
    "--after",
    metavar="DATE",
    help="Keep blocks dated at the beginning of DATE or later: with 2023-06, from June 1 on.",
)
@click.option(
    "--known",
    "track",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Drop blocks whose content a language model knows already: the model of [generator] in TRACK's "
    "trecexam.toml. Answers are stored in TRACK/.trecexam.",
)
@writing_or_estimating
def filtering(
    blocks: Path, output: Path, after: str | None, track: Path | None, estimate: bool, as_json: bool
) -> tuple[Result | None, int]:
    """Filter knowledge blocks of BLOCKS.jsonl by date, and by what a model knows; say why each was dropped.

    Dates are ISO: 2023-11-19, 2023-11-19T00:16:11Z, 2023, 2023-11; UTC without a zone. The whole period must
    match: 2023 is not after 2023-06. Blocks without an ISO date are dropped, with the reason. Duplicates are
    kept once. A block for which the model answers neither yes nor no is kept, and counted.

    Prints how many blocks each filter drops, and how many only it drops. Exit status 1: no block is left,
    not all were processed, or a line is not a block.
    """
    from trecexam.extensions.ragval.filtering import FILES, beginning, filter_blocks, write_filtered
    from trecexam.graders.base import Estimate
    from trecexam.line.protected import refuse_folder

    refuse_folder(output, (blocks,), FILES, always=FILES)
    if after is not None:
        try:
            beginning(after)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--after") from None
    filtered = filter_blocks(blocks, after)
    if estimate and track is None:
        return None, show_estimate(lambda timed=False: Estimate(0), as_json=as_json)
    caught: list[int] = []
    if track is not None:
        with trecexam.open_track(track) as opened:
            calls = opened.ragval.without_known, opened.ragval.estimate_known
            without_known, caught = ask(
                *calls, filtered, only_estimate=estimate, as_json=as_json and estimate
            )
        if without_known is None:
            return None, 0
        filtered = without_known
    write_filtered(filtered, output)
    if filtered.knowing is not None:
        _say_known(filtered.knowing)
    not_taken(filtered.rejected)
    dropped, left = len(filtered.blocks) - filtered.n_kept, filtered.n_kept
    note = f"{plural(len(filtered.blocks), 'block')}: {dropped:,} dropped, {left:,} kept: {output}"
    whole = filtered.knowing is None or not (filtered.knowing.why or filtered.knowing.unwritten)
    status = 0 if filtered.n_kept and whole and not filtered.rejected else 1
    return filtered.noted(note), exit_status(caught, status)


def _say_known(knowing: Knowing) -> None:
    for block_id, reason in knowing.unwritten:
        click.echo(printable(f"block {block_id}: {reason}; it is kept"), err=True)
    if knowing.why:
        click.echo(f"ended early: {knowing.why}; blocks without an answer are kept", err=True)
    unparsed = list(knowing.answers.values()).count(None)
    if unparsed:
        click.echo(f"neither yes nor no in {plural(unparsed, 'answer')}: these blocks are kept", err=True)
    if knowing.cut:
        click.echo(f"{plural(knowing.cut, 'block')} cut at the end", err=True)
    used(knowing.used, knowing.cost)
