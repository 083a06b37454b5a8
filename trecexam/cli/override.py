"""`trecexam override`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from trecexam.cli.options import answering, track_argument
from trecexam.cli.reading import reading, say
from trecexam.errors import quoted
from trecexam.files.track_lock import holder

if TYPE_CHECKING:
    from trecexam.features.override.overriding import Overridden
    from trecexam.results.result import Result
    from trecexam.track import Track


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
    help="Give this rating, on the grader's scale; with a grader of support full (2), partial (1) or no (0); "
    "to a passage as a whole, where the track has official judgments, a judgment on their scale.",
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
    rating_options = {"--query": query_id, "--doc": doc_id, "--who": who, "--why": why}
    missing = [option for option, value in rating_options.items() if not value]
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
    say(_lines(track, track.override(query_id, doc_id, rating, item=item, who=who, why=why)))
    return None


def _lines(track: Track, done: Overridden) -> Iterator[str]:
    """Yield the rating that counts now, and the next step."""
    row, before, after = done.row, done.before, done.after
    what = f"{row.query_id} {row.doc_id} {row.item_id}".rstrip()
    if not done.written:
        yield f"{what}: {row.who} said so already"
        return

    def word(rating: int | None) -> str:
        if rating is None:
            return "withdrawn"
        return done.words[rating] if done.words and not row.scale else str(rating)

    machine = "no rating" if done.machine is None else word(done.machine)
    if after is None:
        now = "no judgment counts" if row.scale else f"back to the grader's {machine}"
        if row.rating is not None:
            now = f"{word(row.rating)} ({row.who}) is kept, people differ: {now}"
    elif done.official is not None:
        now = (
            f"{word(after.rating)} ({after.who}) is kept; the official judgment {done.official} counts, "
            "until its file is edited"
        )
    else:
        now = f"{word(after.rating)} ({after.who})"
        now += " is the judgment" if row.scale else f" in place of the grader's {machine}"
    yield f"{what}: {now}"
    if before is not None and after is not None and before.who != after.who:
        file, rule = "judgments" if row.scale else "overrides", track.folder.config.judging.rule
        yield (
            f"{before.who} had said {word(before.rating)}: {before.why}; both are kept in {file}.tsv, and "
            f"the rule `{rule}` decides which counts"
        )
    pid = holder(track.folder.lock_path)
    if pid is None:
        yield f"next: trecexam watch {quoted(track.folder.root)} --once"
    else:
        yield f"the running `trecexam watch` (process {pid}) will apply it"
