"""`trecexam bank generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from trecexam.cli.options import estimate_json_option, estimate_option, track_argument
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.extensions.banks.generation.generate import Generated

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: trecexam bank generate mytrack --prompt nuggets --estimate")
@track_argument
@click.option(
    "--prompt",
    default="questions",
    show_default=True,
    metavar="NAME|FILE",
    help="questions, nuggets, subtopics and subtopic-nuggets (of each `query_id<TAB>subtopic` of "
    "TRACK/subtopics.tsv), nuggetizer (iteratively, from passages), or a .toml or .jinja file of your own.",
)
@click.option(
    "--query", "query_ids", multiple=True, metavar="ID", help="Of this query alone. May be repeated."
)
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of a query's relevant, or else top-ranked, passages nuggetizer reads so many [default: 50].",
)
@click.option(
    "--again",
    is_flag=True,
    help="Also where there are items: those that a model wrote give way; edited and retired ones stay.",
)
@estimate_option
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    help="A file of the track's bank [default: TRACK/bank.questions.jsonl or bank.nuggets.jsonl].",
)
@click.option(
    "--v3",
    type=_FILE,
    metavar="FILE",
    help="Write that file's items here, too, as nugget banks of TREC AutoJudge, v3.",
)
@estimate_json_option
def generate(
    track: Path, prompt: str, *, estimate: bool, as_json: bool, v3: Path | None, **given: Any
) -> int:
    """Have a language model write the test bank of TRACK: items for every query that has none.

    Who writes is said in [generator] of trecexam.toml, or else is the language model of [grader]. The file
    has a line of JSON for each item, to be edited in any editor; what is edited, retired or written by hand
    is never overwritten. Answers are kept in TRACK/.trecexam, so that none is asked for twice.

    Exit status: 0, or 1 when a query has got no items or not all, or it ended early.
    """
    with trecexam.open_track(track) as opened:
        bank = opened.bank
        made, caught = ask(
            bank.generate, bank.estimate, prompt, only_estimate=estimate, as_json=as_json, **given
        )
    if made is None:
        return 0
    _say(made)
    if v3 is not None and made.output.exists():
        # The formats are half of --help's time.
        import converters
        from converters.bank import V3
        from converters.convert import converted

        converters.write(converted(made.output, "bank", V3.name), v3, V3.name)
        click.echo(f"wrote {v3} ({V3.name})", err=True)
    return exit_status(caught, 0 if made.complete else 1)


def _say(made: Generated) -> None:
    for failure in made.failures:
        click.echo(printable(f"query {failure.request}: {failure.reason}"), err=True)
    told(made)
    if str(made.dropped):
        click.echo(f"left out: {made.dropped}", err=True)
    if made.n_cut:
        click.echo(f"the passages of {made.n_cut:,} prompts were cut to what the model takes", err=True)
    if not made.written:
        what = "nothing is missing" if made.complete else "no new items"
        click.echo(f"{what}; {made.output} is as it was", err=True)
        return
    replaced = f", in place of {made.replaced:,}" if made.replaced else ""
    click.echo(
        f"{made.items:,} items of {made.queries:,} queries{replaced}: {made.output}; edit it in any editor, "
        "then look at it with `trecexam bank check`",
        err=True,
    )
