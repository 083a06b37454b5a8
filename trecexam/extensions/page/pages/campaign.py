"""Pages for organizers of a campaign: progress, agreement and adjudication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from converters.overrides import ADJUDICATED
from converters.records import Item
from trecexam.errors import RatingConflictError
from trecexam.extensions.campaign.agreement import Disagreement, assessor_agreement, disagreements
from trecexam.extensions.campaign.assessments import WITHDRAWN, CellKey, ratings_by_assessor
from trecexam.extensions.campaign.planning import judging_progress
from trecexam.extensions.page.assessing import guidelines, plan_of
from trecexam.extensions.page.listing import Address, listed
from trecexam.extensions.page.pages.assess import to_planned
from trecexam.extensions.page.pages.people import SOON, rating_of
from trecexam.extensions.page.people import choices, standing, text_of
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    grader_folder,
    live_of,
    render,
    show,
    urls_of,
    view_of,
    who_of,
)
from trecexam.extensions.page.tabled import drawn
from trecexam.features.override.overriding import seen_token, take
from trecexam.results.result import Tables

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View


def campaign(request: Request) -> Response:
    """Progress of each assessor."""
    elsewhere = to_planned(request, "campaign")
    if elsewhere is not None:
        return elsewhere
    folder, view = grader_folder(request), view_of(request)
    progress, (_, trouble) = Tables({}), guidelines(folder)
    if plan_of(folder, view) is not None:
        progress = live_of(request).call(view.grader_name, judging_progress)
    return show(request, "campaign.html", progress, rule=folder.config.judging.rule, trouble=trouble)


def agreement(request: Request) -> Response:
    """Agreement of assessors, and the cells on which they differ."""
    view, address = view_of(request), Address.of(request)
    live = live_of(request)
    agreed = live.call(view.grader_name, assessor_agreement)
    differing = live.call(view.grader_name, disagreements)
    lines = [line for row in differing if (line := _line(view, row)) is not None]
    visible = lines if address.get("which") == "all" else [line for line in lines if not line["is_decided"]]
    return render(
        request, "campaign_agreement.html", agreed=agreed, rows=listed(visible, address), n_all=len(lines),
        agreement=drawn(agreed.table, urls_of(request)), n_elsewhere=len(differing) - len(lines),
        n_open=sum(not line["is_decided"] for line in lines), who=who_of(request),
    )  # fmt: skip


def adjudicate(request: Request) -> Response:
    """Store an adjudication, if the ratings are still those that were shown."""
    form, view, live = form_of(request), view_of(request), live_of(request)
    key = CellKey(form.get("query", ""), form.get("doc", ""), form.get("item", ""))
    folder, state = grader_folder(request), view.query(key.query_id)
    if state is None or state.place(key.doc_id) is None:
        raise NotFoundError("This passage is not in the pool any more.")
    rating = rating_of(form.get("rating", ""))
    back = urls_of(request).local(form.get("back", ""))
    try:
        decision = take(
            folder, standing(view, state), key.doc_id, key.item_id, rating, author_of(request),
            form.get("why", "").strip() or (WITHDRAWN if rating is None else ADJUDICATED),
            form.get("seen", ""), adjudicates=True,
            is_current=lambda: _seen(ratings_by_assessor(folder, key, view.scale)) == form.get("ratings", ""),
        )  # fmt: skip
    except RatingConflictError:
        live.reload(wait=SOON)
        return go(request, back, "Nothing was saved: the ratings changed meanwhile. Look at both again.")
    live.reload(wait=SOON)
    rating_text = "" if rating is None else text_of(rating, choices(view, _item(state, key.item_id)))
    message = f"{rating_text} counts now, by your decision." if rating_text else "The decision is withdrawn."
    return go(request, back, message, decision.row.who)


def _line(view: View, row: Disagreement) -> dict[str, Any] | None:
    """Return a disagreement for the page; None if its passage or item is no longer in the pool or bank."""
    state = view.query(row.query_id)
    row_index = None if state is None else state.place(row.doc_id)
    if state is None or row_index is None:
        return None
    item = _item(state, row.item_id)
    if row.item_id and item is None:
        return None
    ratings, counts = choices(view, item), state.human.get((row.doc_id, row.item_id))
    return {
        "row": row,
        "item": item,
        "text": state.texts[row_index] or "",
        "choices": ratings,
        "ratings": {name: text_of(rating, ratings) for name, rating in row.ratings.items()},
        # To tell these ratings, and the one that counts, from later ones.
        "seen": _seen(row.ratings),
        "counts": counts,
        "token": seen_token(counts),
        "is_decided": counts is not None and counts.kind == ADJUDICATED,
    }


def _item(state: QueryView, item_id: str) -> Item | None:
    return next((item for item in state.items if item.item_id == item_id), None)


def _seen(ratings: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {rating}" for name, rating in sorted(ratings.items()))


ROUTES = [
    Route("/campaign", campaign),
    Route("/campaign/agreement", agreement),
    Route("/campaign/adjudicate", adjudicate, methods=["POST"]),
]
