"""Ratings by people of cells and passages, which replace the grader's."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.extensions.campaign.assessments import WITHDRAWN, CellKey
from trecexam.extensions.page.drawing import named
from trecexam.extensions.page.people import standing, words_of
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    grader_folder,
    live_of,
    urls_of,
    view_of,
)
from trecexam.features.override.overriding import Overridden, take

#: Maximum seconds to wait for the new state after a change.
SOON = 5.0


def override(request: Request) -> Response:
    """Store or withdraws a rating of a cell or passage."""
    form, view, live = form_of(request), view_of(request), live_of(request)
    key = CellKey(form.get("query", ""), form.get("doc", ""), form.get("item", ""))
    state = view.query(key.query_id)
    if state is None:
        raise NotFoundError(f"No query '{key.query_id}' in the bank.")
    rating = rating_of(form.get("rating", ""))
    why = form.get("why", "") or (WITHDRAWN if rating is None else "")
    folder, back = grader_folder(request), urls_of(request).local(form.get("back", ""))
    try:
        outcome = take(
            folder,
            standing(view, state),
            key.doc_id,
            key.item_id,
            rating,
            author_of(request),
            why,
            form.get("seen") or None,
        )
    except RatingConflictError as error:
        live.reload()
        return go(
            request, back, f"Nothing was saved: {error.reason}. Look again, and rate again if you like."
        )
    if outcome.written:
        live.reload(wait=SOON)
    return go(request, back, said_of(outcome, words_of(view, whole=not key.item_id)), outcome.row.who)


def rating_of(text: str) -> int | None:
    """Return the rating in a form; None to withdraw one.

    Raises:
        TrecexamError: it says neither.
    """
    if text == "withdraw":
        return None
    if not (text.isascii() and text.isdigit() and len(text) == 1):
        raise TrecexamError("choose a rating first: go back, and choose one")
    return int(text)


def said_of(outcome: Overridden, words: Sequence[str] = ()) -> str:
    """Return the message after a stored rating.

    Args:
        words: what people call the ratings from 0, where they have names.
    """

    row, after = outcome.row, outcome.after
    what = f"{row.doc_id} on {row.item_id}" if row.item_id and not words else row.doc_id
    if not outcome.written:
        return f"{what}: {row.who} said so already."
    if after is None:
        effect = "is withdrawn" if row.rating is None else "is kept; people differ, so that none counts"
        return f"{what}: the rating {effect}."
    assert after.rating is not None
    instead = (
        f", in place of {outcome.before.who}'s" if outcome.before and outcome.before.who != after.who else ""
    )
    return f"{what}: {named(after.rating, words)} by {after.who} counts now{instead}."


ROUTES = [Route("/override", override, methods=["POST"])]
