"""Edits the items of a query; only changed items are graded again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from converters.errors import ConversionError
from trecexam.errors import ItemConflictError, TrecexamError
from trecexam.extensions.banks.editing import KINDS, BankEditing, Edited, ToEdit, items_to_edit
from trecexam.extensions.page.pages.people import SOON
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    grader_folder,
    live_of,
    render,
    urls_of,
    view_of,
    who_of,
)
from trecexam.extensions.page.urls import segment
from trecexam.inputs.overrides import digest_of
from trecexam.track import open_track

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View


def bank(request: Request) -> Response:
    """Return the items of a query, including retired ones."""
    return _page(request, request.path_params["query_id"])


def change(request: Request) -> Response:
    """Adds, edits, retires or restores an item; shows the input again on an error."""
    live, form, query_id = live_of(request), form_of(request), request.path_params["query_id"]
    what, view = request.url.path.rpartition("/")[2], _view(request, query_id)
    try:
        with open_track(live.root) as track:
            done = _changed(track[view.grader_name].bank, what, query_id, form, who=author_of(request))
    except (TrecexamError, ConversionError) as error:
        # The page shows the current item, so that the form can be sent again.
        status = 409 if isinstance(error, ItemConflictError) else 422
        return _page(request, query_id, status, trouble=f"Nothing was saved: {error}", typed=form)
    if done.written:
        live.reload(wait=SOON)
    verb = {"item": "Added", "edit": "Changed"}.get(what, "Retired" if done.item.retired else "Taken back")
    message = f"{verb}: {done.item.text}" if done.written else f"No change: {done.item.text}"
    target = f"{urls_of(request).bank(query_id)}#{_anchor(done.item.item_id)}"
    return go(request, target, message, author_of(request))


def _changed(bank: BankEditing, what: str, query_id: str, form: Mapping[str, str], who: str) -> Edited:
    """Make the change of a form; `what` is the end of its path."""
    item, text, why, seen = (form.get(name, "") for name in ("item", "text", "why", "seen"))
    if what == "edit":
        return bank.edit_item(item, text, who=who, why=why, seen=seen or None)
    if what == "retire":
        retired = form.get("retired") == "yes"
        return bank.retire_item(item, who=who, why=why, retired=retired, seen=seen or None)
    kind, importance = form.get("kind", ""), form.get("importance", "")
    return bank.add_item(query_id, text, who=who, why=why, kind=kind, importance=importance)


def _page(request: Request, query_id: str, status: int = 200, **values: Any) -> Response:
    view = _view(request, query_id)
    folder = grader_folder(request)
    trouble = values.pop("trouble", "")
    items: tuple[ToEdit, ...] = ()
    try:
        items = items_to_edit(folder, query_id)
    except (TrecexamError, ConversionError) as error:
        if query_id not in view.queries and not isinstance(error, ConversionError):
            raise NotFoundError(str(error)) from None
        trouble = trouble or str(error)
    state = view.query(query_id)
    kinds = [entry.item.kind for entry in items]
    return render(
        request,
        "bank.html",
        status,
        query_id=query_id,
        text="" if state is None else state.text,
        live_items=[entry for entry in items if not entry.item.retired],
        retired=[entry for entry in items if entry.item.retired],
        cells=0 if state is None else len(set(state.keys) - {None}),
        digest=digest_of,
        anchor=_anchor,
        kinds=KINDS,
        kind=max(KINDS, key=lambda kind: kinds.count(kind)),
        trouble=trouble,
        who=who_of(request),
        typed=values.get("typed", {}),
    )


def _view(request: Request, query_id: str) -> View:
    """Return the view of the bank's grader.

    Raises:
        NotFoundError: it asks about no item of a bank.
    """
    view = view_of(request)
    state = view.query(query_id)
    if state is not None and not state.has_bank:
        raise NotFoundError(f"The grader {view.grader_name} does not use a test bank.")
    return view


def _anchor(item_id: str) -> str:
    return f"item-{segment(item_id)}"


ROUTES = [
    Route("/bank/{query_id:name}", bank),
    Route("/bank/{query_id:name}/item", change, methods=["POST"]),
    Route("/bank/{query_id:name}/item/edit", change, methods=["POST"]),
    Route("/bank/{query_id:name}/item/retire", change, methods=["POST"]),
]
