"""A page on a passage, with grades and raw answers for every item of its query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.answers import GraderAnswer, answers_on
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.marking import marked
from trecexam.extensions.page.people import choices, words_of
from trecexam.extensions.page.rendering import NotFoundError, query_of, render, view_of, who_of
from trecexam.features.override.overriding import seen_token
from trecexam.grades.sheets import ERROR, MISSING, REFUSED, UNPARSED

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView

#: Status of a cell without a rating -> description.
STATUS = {
    MISSING: "not graded yet",
    UNPARSED: "no rating in the answer",
    REFUSED: "refused by the model",
    ERROR: "an error",
}


def passage(request: Request) -> Response:
    """Show a passage; with `?item=`, mark the answer on the item."""
    view, state, address = view_of(request), query_of(request), Address.of(request)
    doc_id = request.path_params["doc_id"]
    row_index = state.place(doc_id)
    if row_index is None:
        raise NotFoundError(
            f"Passage '{doc_id}' is not in the pool of query '{state.query_id}': no run has it in its first "
            f"{view.depth} ranks."
        )
    answers, trouble = answers_on(view, state, row_index)
    cells = list(_cells(state, row_index, answers))
    focus = next((cell for cell in cells if cell["item"].item_id == address.get("item")), None)
    text = state.texts[row_index]
    spans: Sequence[tuple[str, bool]] = [(text or "", False)]
    if text and focus is not None and focus["answer"] is not None:
        spans = marked(text, focus["answer"].text)
    return render(
        request,
        "passage.html",
        state=state,
        doc_id=doc_id,
        place=row_index,
        text=text,
        spans=spans,
        any_marked=any(is_marked for _, is_marked in spans),
        cells=cells,
        focus=focus,
        trouble=trouble,
        ranks=state.ranks(row_index),
        human=state.human.get((doc_id, "")),
        scale=words_of(view, whole=True),
        choices=lambda item: choices(view, item),
        token=lambda item_id: seen_token(state.human.get((doc_id, item_id))),
        who=who_of(request),
    )


def _cells(state: QueryView, row_index: int, answers: Mapping[str, GraderAnswer]) -> Iterator[dict[str, Any]]:
    """Yield the passage's cells: `rating` as it counts, `machine` the grader's own; None if missing."""
    for column, item in state.items_of(row_index):
        code, counts = int(state.codes[row_index, column]), int(state.ratings[row_index, column])
        yield {
            "number": column + 1,
            "item": item,
            "rating": None if counts < 0 else counts,
            "machine": None if code < 0 else code,
            "status": "no text to grade" if state.keys[row_index] is None else STATUS.get(code, ""),
            "human": state.human.get((state.doc_ids[row_index], item.item_id)),
            "answer": answers.get(item.item_id),
        }


ROUTES = [Route("/query/{query_id:name}/passage/{doc_id:name}", passage)]
