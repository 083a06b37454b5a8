"""`trecexam bank`, `bank generate`, `bank check` and `bank diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import converters
from converters.bank import V3
from converters.convert import converted
from trecexam.cli.main import LazyGroup
from trecexam.cli.options import (
    estimate_json_option,
    estimate_option,
    grader_option,
    measure_option,
    open_chosen,
    output_path,
    track_argument,
)
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.errors import TrecexamError
from trecexam.results.terminal import printable
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.banks.generation.generate import Generated
    from trecexam.results.result import Result
    from trecexam.track import Track

_FILE = click.Path(path_type=Path, dir_okay=False)
_EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group(cls=LazyGroup, epilog="Example: trecexam bank check mytrack")
def bank() -> None:
    """Make, check and compare test banks.

    To remove an item from the track and keep its grades, add "retired": true to its line of the bank.
    """


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
    calls = track.bank.generate, track.bank.estimate
    made, caught = ask(*calls, prompt, only_estimate=estimate, as_json=as_json, **options)
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
        click.echo(f"passages cut to fit the model in {plural(made.n_cut, 'prompt')}", err=True)
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


@click.command(epilog="Example: trecexam bank check bank.questions.jsonl")
@click.argument(
    "paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="FILE...|TRACK"
)
@grader_option
@reading
def check(paths: tuple[Path, ...], grader: str | None) -> Result:
    """Check the bank files FILE..., or TRACK's bank, and list what to look at again.

    Finds unreadable lines, and items that are empty, too long (30 words, nuggets 20), copies of the query,
    duplicates (up to case and punctuation), or wrapped in remains of a model's answer. With TRACK, also
    finds queries without items or text. Exit status: 0 if nothing was found, else 1.
    """
    from trecexam.extensions.banks.checks import check_files

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise TrecexamError("give one track, or files", path=folders[0])
    if not folders:
        return check_files(paths)
    with open_chosen(folders[0], grader) as opened:
        return opened.bank.check()


@click.command(epilog="Example: trecexam bank diff /tmp/old.jsonl mytrack/bank.questions.jsonl mytrack")
@click.argument("old", type=_EXISTING_FILE, metavar="OLD")
@click.argument("new", type=_EXISTING_FILE, metavar="NEW")
@track_argument
@measure_option
@reading
def diff(old: Path, new: Path, track: Track, measures: tuple[str, ...]) -> Result:
    """Show what the bank file NEW changes against OLD: items, labels, and the ranks of TRACK's runs.

    Uses TRACK's existing grades; runs no model and writes nothing. If OLD or NEW is a bank file of TRACK,
    both are combined with its other bank files. Lists, for each measure, the runs whose rank differs, then
    the items and the labels that differ. Means are over all queries of each bank.
    """
    with bad_measures():
        return track.bank.diff(old, new, measures or None)
