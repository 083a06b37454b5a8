"""`trecexam bank generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import converters
from converters.bank import V3
from converters.convert import converted
from trecexam.cli.options import estimate_json_option, estimate_option, output_path, track_argument
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.results.terminal import printable
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.banks.generation.generate import Generated
    from trecexam.track import Track

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(epilog="Example: trecexam bank generate mytrack --prompt nuggets --estimate")
@track_argument
@click.option(
    "--prompt",
    metavar="NAME|FILE",
    help="Use this prompt: questions, nuggets, subtopics and subtopic-nuggets (for each "
    "`query_id<TAB>subtopic` of TRACK/subtopics.tsv), nuggetizer (iterative, from passages), or your "
    "own .toml or .jinja file [default: `write_bank` of the grader, else questions].",
)
@click.option(
    "--query",
    "query_ids",
    multiple=True,
    metavar="ID",
    help="Write items for this query only. May be repeated [default: all].",
)
@click.option(
    "--passages",
    type=click.IntRange(min=1),
    metavar="N",
    help="Let nuggetizer read this many passages of each query, relevant ones or else top-ranked ones "
    "[default: 50].",
)
@click.option(
    "--again",
    is_flag=True,
    help="Replace existing items that a model wrote; edited and retired ones stay. Also ask again where a "
    "stored answer could not be read.",
)
@estimate_option
@click.option(
    "-o",
    "--output",
    type=_FILE,
    metavar="FILE",
    help="Write to this file of the track's bank [default: TRACK/bank.questions.jsonl or "
    "bank.nuggets.jsonl].",
)
@click.option(
    "--v3",
    type=_FILE,
    metavar="FILE",
    callback=output_path,
    help="Write the items to this file, too, as nugget banks of TREC AutoJudge, v3.",
)
@estimate_json_option
def generate(
    track: Track, prompt: str | None, *, estimate: bool, as_json: bool, v3: Path | None, **options: Any
) -> int:
    """Write the test bank of TRACK with a language model: items for every query that has none.

    The model is that of [generator] in trecexam.toml, else the language model of [grader]. The bank has one
    JSON line per item, to edit in any editor. Items that you edit, retire or add are never overwritten.
    Answers are stored in TRACK/.trecexam, so each prompt is sent once.

    Exit status: 0, or 1 if a query lacks items or it ended early.
    """
    bank = track.bank
    made, caught = ask(
        bank.generate, bank.estimate, prompt, only_estimate=estimate, as_json=as_json, **options
    )
    if made is None:
        return 0
    _say(made)
    if v3 is not None and made.output.exists():
        converters.write(converted(made.output, "bank", V3.name), v3, V3.name)
        click.echo(f"wrote {v3} ({V3.name})", err=True)
    return exit_status(caught, 0 if made.complete else 1)


def _say(made: Generated) -> None:
    for request, reason in made.failures:
        click.echo(printable(f"query {request}: {reason}"), err=True)
    told(made)
    if made.dropped:
        dropped = ", ".join(f"{number:,} {why}" for why, number in made.dropped.items())
        click.echo(f"left out: {dropped}", err=True)
    if made.n_cut:
        prompts = plural(made.n_cut, "prompt")
        click.echo(f"passages cut to fit the model in {prompts}", err=True)
    if not made.written:
        what = "nothing is missing" if made.complete else "no new items"
        click.echo(f"{what}; {made.output} is unchanged", err=True)
        return
    replaced = f", replacing {made.replaced:,}" if made.replaced else ""
    click.echo(
        f"{plural(made.items, 'item')} of {plural(made.queries, 'query')}{replaced}: {made.output}; edit it "
        "in any editor, then look at it with `trecexam bank check`",
        err=True,
    )
