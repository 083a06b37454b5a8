"""`trecexam ragval`: questions, their answers, and a report on judged answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import estimate_json_option, estimate_option, track_argument
from trecexam.cli.reading import reading, say
from trecexam.cli.signals import exit_status
from trecexam.cli.working import ask, told
from trecexam.errors import rejected_notes
from trecexam.results.terminal import printable
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.ragval.questions import Questions
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command("questions", epilog="Example: trecexam ragval questions mytrack --per-block 3 --estimate")
@track_argument
@click.option(
    "--blocks",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="F",
    help='Read these knowledge blocks, JSONL: "content", optionally "block_id", "title", "url", "date" and '
    "any other field [default: TRACK/blocks.jsonl].",
)
@click.option(
    "--per-block",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Write N questions about each block, each with the next seed.",
)
@estimate_option
@estimate_json_option
def asking(track: Track, blocks: Path | None, per_block: int, estimate: bool, as_json: bool) -> int:
    """Write questions about knowledge blocks with a language model, into TRACK/bank.questions.jsonl.

    The model is that of [generator] in trecexam.toml, else the language model of [grader]. The temperature
    is 1 unless [generator] sets it. Repeated blocks are dropped. A block is cut after
    15,000 characters. Each line has the question, its block and its origin. Existing lines stay; a block and
    seed get one question. Unreadable answers go to questions.unread.jsonl, with the reason. Answers are
    stored in TRACK/.trecexam, so each prompt is sent once.

    Exit status: 0, or 1 if a block was not processed, a line is not a block, or no answer is a question.
    """
    calls = track.ragval.write_questions, track.ragval.estimate_questions
    made, caught = ask(*calls, blocks, per_block=per_block, only_estimate=estimate, as_json=as_json)
    if made is None:
        return 0
    _say(made)
    whole = made.complete and not made.rejected
    return exit_status(caught, 0 if whole and (made.questions or made.n_existing) else 1)


def _say(made: Questions) -> None:
    say(rejected_notes(made.rejected))
    told(made, "block")
    for reason, number in made.unread.items():
        click.echo(f"no question in {plural(number, 'answer')}: {reason}", err=True)
    if made.unread:
        click.echo(f"they are in {made.unread_file}", err=True)
    if made.duplicates:
        dropped = plural(made.duplicates, "block")
        click.echo(f"dropped {dropped}: the same as an earlier line", err=True)
    if made.cut:
        click.echo(f"{plural(made.cut, 'block')} cut at the end", err=True)
    existing = f", {made.n_existing:,} existed already" if made.n_existing else ""
    click.echo(f"{plural(made.questions, 'new question')}{existing}: {made.output}", err=True)


@click.command("answers", epilog="Example: trecexam ragval answers mytrack --estimate")
@track_argument
@estimate_option
@estimate_json_option
def answering(track: Track, estimate: bool, as_json: bool) -> int:
    """Answer the bank's questions with a language model, as the two bounds for systems.

    Writes TRACK/runs/closed-book.jsonl (from the question alone, the lower bound) and
    TRACK/runs/oracle.jsonl (with the question's block, the upper bound), with token counts where a server
    reports them. The model is that of [generator] in trecexam.toml, else the language model of [grader]; use
    the one that your systems use. Answers are stored in TRACK/.trecexam, so each prompt is sent once.

    Exit status: 0, or 1 if a question has no answer.
    """
    calls = track.ragval.answer, track.ragval.estimate_answers
    made, caught = ask(*calls, only_estimate=estimate, as_json=as_json)
    if made is None:
        return 0
    told(made)
    for (_, question_id), reason in made.unwritten:
        click.echo(printable(f"question {question_id}: {reason}"), err=True)
    if made.cut:
        click.echo(f"{plural(made.cut, 'block')} cut at the end", err=True)
    for path, number in made.files.items():
        click.echo(f"{plural(number, 'answer')}: {path}", err=True)
    return exit_status(caught, 0 if made.complete else 1)


@click.command(epilog="Example: trecexam ragval report closed-book.jsonl rag.jsonl oracle.jsonl")
@click.argument(
    "paths",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
    metavar="FILE...",
)
@reading
def report(paths: tuple[Path, ...]) -> Result:
    """Report systems by their judged answers in FILE..., JSON Lines (plain or gzip), best sum first.

    A line has truthfulness and relevance, 1 to 5, question_id (or the question's text), and optionally
    run_id, n_input_tokens, n_output_tokens. Without run_id, the file name names the system.
    Answers without scores count as unparsed; means leave them out, tokens do not.

    --json also has standard errors.

    Exit status: 0; 1 if a line has an error; 2 if no file can be read.
    """
    from trecexam.extensions.ragval.reporting import ragval_report

    return ragval_report(*paths)
