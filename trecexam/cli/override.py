"""`trecexam override`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import answering, track_argument
from trecexam.cli.reading import reading
from trecexam.errors import quoted
from trecexam.files.track_lock import holder
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.tables.result import Result
    from trecexam.track import Track

#: Which of several people's ratings counts, by the rule.
COUNTING = {"latest": "the last", "majority": "the majority", "adjudicated": "what was adjudicated"}


@click.command(
    epilog="Example: trecexam override mytrack --query q1 --doc d7 --item 3 --rating 1 --who ann "
    '--why "names the wrong year"'
)
@track_argument
@click.option("--query", "query_id", metavar="QUERY_ID", help="Rate a passage of this query.")
@click.option("--doc", "doc_id", metavar="DOC_ID", help="Rate this passage of the query's pool.")
@click.option(
    "--item",
    metavar="ITEM",
    default="",
    help="Rate the passage on this item: its id, or its index in the bank from 1. With a grader of support "
    "RUN:N, the Nth sentence of a run's response that cites the passage [default: rate the passage as "
    "a whole].",
)
@click.option(
    "--rating",
    metavar="N",
    help="Give this rating, 0..5; with a grader of support full (2), partial (1) or no (0); to a passage as "
    "a whole, where the track has official judgments, a judgment on their scale.",
)
@click.option("--withdraw", is_flag=True, help="Withdraw the rating: the grader's counts again.")
@click.option("--list", "listed", is_flag=True, help="List all ratings by people, and which of them count.")
@click.option(
    "--who", envvar="TRECEXAM_WHO", show_envvar=True, metavar="NAME", help="Store this name as the rater's."
)
@click.option("--why", metavar="TEXT", help="Store this reason, so that others can check it.")
@reading
def override(
    track: Track,
    query_id: str | None,
    doc_id: str | None,
    item: str,
    rating: str | None,
    withdraw: bool,
    listed: bool,
    who: str | None,
    why: str | None,
) -> Result | None:
    """Replace the grader's rating of a cell or passage of TRACK with a person's.

    Appends a line to TRACK/overrides.tsv, which you may also edit by hand. The last rating of a cell counts;
    the grader's rating and earlier ones are kept. `trecexam watch` updates the scores.

    Where the track has official judgments, or a `scale` in [judging], a passage as a whole is judged on that
    scale: a line of TRACK/judgments.tsv, which `fill`, `learn`, `holes` and `agreement` use like an official
    judgment.

    --list changes nothing. It shows a row per readable line of TRACK/overrides.tsv with the grader's rating,
    then passages with the same text, which get the same rating, and with [judging] the lines of
    judgments.tsv. With several graders it shows the ratings of all; --grader selects one. Its exit status is
    1 if a line was rejected.
    """
    if listed:
        if query_id or doc_id or item or rating is not None or withdraw or why:
            raise click.UsageError("--list rates nothing: leave out the other options")
        return track.override.ratings()
    _rate(track, query_id, doc_id, item, rating, withdraw, who, why)
    return None


def _rate(
    track: Track,
    query_id: str | None,
    doc_id: str | None,
    item: str,
    rating: str | None,
    withdraw: bool,
    who: str | None,
    why: str | None,
) -> None:
    """Store a rating, and print what counts now."""
    missing = [
        option
        for option, value in (("--query", query_id), ("--doc", doc_id), ("--who", who), ("--why", why))
        if not value
    ]
    if (rating is None) != withdraw:
        missing.append("either --rating or --withdraw")
    if missing:
        raise click.UsageError(f"give {', '.join(missing)}")
    assert query_id
    assert doc_id
    assert who
    assert why
    # Imports numpy.
    from trecexam.features.override.overriding import has_cell

    track = answering(track, partial(has_cell, query_id=query_id, doc_id=doc_id, item=item))
    done = track.override(query_id, doc_id, rating, item=item, who=who, why=why)
    root, lock = track.folder.root, track.folder.lock_path
    rule = track.folder.config.judging.rule
    # Item ids come from the bank, and the other person's words from a shared file.
    what = printable(f"{query_id} {doc_id}" + (f" {done.row.item_id}" if done.row.item_id else ""))

    def rating_text(rating: int | None) -> str:
        if rating is None:
            return "withdrawn"
        return done.words[rating] if done.words and not done.row.scale else str(rating)

    machine = "no rating" if done.machine is None else rating_text(done.machine)
    if not done.written:
        click.echo(f"{what}: {who} said so already", err=True)
        return
    judged = bool(done.row.scale)
    if done.after is None:
        remaining = (
            ""
            if done.row.rating is None
            else f"{rating_text(done.row.rating)} ({done.row.who}) is kept, people differ: "
        )
        now = remaining + ("no judgment counts" if judged else f"back to the grader's {machine}")
    else:
        now = f"{rating_text(done.after.rating)} ({printable(done.after.who)})"
        if done.official is not None:
            now += f" is kept; the official judgment {done.official} counts, until its file is edited"
        else:
            now += " is the judgment" if judged else f" in place of the grader's {machine}"
    click.echo(f"{what}: {now}", err=True)
    if done.before is not None and done.after is not None and done.before.who != done.after.who:
        click.echo(
            printable(f"{done.before.who} had said {rating_text(done.before.rating)}: {done.before.why}")
            + f"; both are kept in {'judgments' if judged else 'overrides'}.tsv, {COUNTING[rule]} counts",
            err=True,
        )
    pid = holder(lock)
    click.echo(
        f"next: trecexam watch {quoted(root)} --once"
        if pid is None
        else f"the running `trecexam watch` (process {pid}) will apply it",
        err=True,
    )
