"""One item: what it asks, how passages do on it, and what the grader said of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.extensions.page.answers import of_item
from trecexam.extensions.page.listing import Address, in_order
from trecexam.extensions.page.pages.passages import STATUS
from trecexam.extensions.page.rendering import NotFoundError, query_of, render, view_of
from trecexam.line.sheets import NOT_ASKED

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def item(request: Request) -> Response:
    """One item and its passages, best rating first."""
    view, state, address = view_of(request), query_of(request), Address.of(request)
    item_id = request.path_params["item_id"]
    column_and_item = state.item(item_id)
    if column_and_item is None:
        retired = any(retired_item.item_id == item_id for retired_item in state.retired)
        raise NotFoundError(
            f"Item '{item_id}' of query '{state.query_id}' is retired."
            if retired
            else f"Query '{state.query_id}' has no item '{item_id}'."
        )
    column, item = column_and_item
    ratings, codes = state.ratings[:, column].tolist(), state.codes[:, column].tolist()
    search_text, only = address.get("q").casefold(), address.get("rating")
    places = [
        place
        for place, rating in enumerate(ratings)
        if codes[place] != NOT_ASKED
        and (not only or (only == "none" and rating < 0) or only == str(rating))
        and (
            not search_text
            or search_text in state.doc_ids[place].casefold()
            or search_text in (state.texts[place] or "").casefold()
        )
    ]
    keys = {
        "rating": lambda place: ratings[place] if ratings[place] >= 0 else None,
        "doc": lambda place: state.doc_ids[place],
        "judgment": lambda place: state.judgments.get(state.doc_ids[place]),
    }
    file_columns = {name: keys[name] for name in ("doc", "rating", "judgment")}
    rows = in_order(places, address, keys, "-rating", file_columns)
    answers = of_item(Path(view.store), view, state, column, list(rows.rows))
    return render(
        request,
        "item.html",
        state=state,
        item=item,
        number=column + 1,
        ratings=ratings,
        codes=codes,
        why={
            place: STATUS.get(codes[place], "") if state.gradable[place] else "no text to grade"
            for place in rows.rows
        },
        rows=rows,
        answers=answers,
        counts=[(value, ratings.count(value)) for value in range(view.settings.max_rating + 1)],
        unrated=sum(rating < 0 for rating, code in zip(ratings, codes, strict=True) if code != NOT_ASKED),
    )


ROUTES = [Route("/query/{query_id:name}/item/{item_id:name}", item)]
