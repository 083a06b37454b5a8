"""A page on an item: its text, and passages with ratings and answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import drawing, urls
from trecexam.extensions.page.answers import of_item
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.pages.passages import STATUS
from trecexam.extensions.page.rendering import NotFoundError, query_of, render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.grades.sheets import NOT_ASKED
from trecexam.results.table import Layout, Table

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View


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
    only = address.get("rating")
    row_indices = [
        row_index
        for row_index, rating in enumerate(ratings)
        if codes[row_index] != NOT_ASKED
        and (not only or (only == "none" and rating < 0) or only == str(rating))
    ]
    passage_table = tabled(
        _table(view, state, row_indices, ratings),
        address,
        "-rating",
        links=lambda doc_id: urls.passage(state.query_id, doc_id, item_id),
        draw={
            "rating": lambda at: drawing.rating(ratings[row_indices[at]], view.words),
            "judgment": lambda at: drawing.label(
                state.judgments.get(state.doc_ids[row_indices[at]]), view.settings.min_relevant
            ),
        },
        beginnings=("text",),
    )
    answers = of_item(
        Path(view.store), view, state, column, [row_indices[at] for at in passage_table.rows.rows]
    )

    def answer_cell(at: int) -> Markup:
        """The grader's answer, or the reason why it is missing, and who replaced it."""
        row_index, doc_id = row_indices[at], state.doc_ids[row_indices[at]]
        why = STATUS.get(codes[row_index], "") if state.gradable[row_index] else "no text to grade"
        human, answer = state.human.get((doc_id, item_id)), answers.by_id.get(doc_id)
        by = f"{human.who}, the grader {why or codes[row_index]}" if human else why
        tag = Markup('<small class="tag{}">{}</small> ').format("" if human else " bad", by) if by else ""
        return Markup("{}{}").format(tag, drawing.text(answer and answer.text, 160))

    return render(
        request,
        "item.html",
        state=state,
        item=item,
        number=column + 1,
        table=passage_table.with_drawn("answer", answer_cell),
        trouble=answers.trouble,
        n_all=sum(code != NOT_ASKED for code in codes),
        counts=[(value, ratings.count(value)) for value in range(view.settings.max_rating + 1)],
        unrated=sum(rating < 0 for rating, code in zip(ratings, codes, strict=True) if code != NOT_ASKED),
    )


def _table(view: View, state: QueryView, row_indices: Sequence[int], ratings: Sequence[int]) -> Table:
    rows = tuple(
        (
            state.doc_ids[row_index],
            ratings[row_index] if ratings[row_index] >= 0 else None,
            state.judgments.get(state.doc_ids[row_index]),
            state.texts[row_index] or "",
        )
        for row_index in row_indices
    )
    short = {"doc": "passage", "judgment": "judged"}
    return Table(("doc", "rating", "judgment", "text"), rows, layout=Layout(("doc",), short=short))


ROUTES = [Route("/query/{query_id:name}/item/{item_id:name}", item)]
