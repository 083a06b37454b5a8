"""Finds queries, runs, items and passages by their ids or texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import render, view_of

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View

#: Hits of a kind that are shown, and passages after which no more are counted.
MOST, COUNTED = 25, 1000


@dataclass(frozen=True)
class PassageHit:
    """A passage whose id or text matches, with the surrounding text."""

    query_id: str
    doc_id: str
    around: str


def search(request: Request) -> Response:
    """Queries, runs, items and passages that contain this text, ignoring case."""
    view = view_of(request)
    query_text = " ".join(Address.of(request).get("q").split())
    search_text = query_text.casefold()
    if not search_text:
        return render(request, "search.html", asked="", most=MOST)
    queries = [h for h in view.heads.values() if search_text in f"{h.query_id}\t{h.text}".casefold()]
    runs = [run for run in view.runs if search_text in run.casefold()]
    passages, total = passage_hits(view, search_text)
    return render(
        request,
        "search.html",
        asked=query_text,
        most=MOST,
        counted=COUNTED,
        queries=queries,
        runs=runs,
        items=[item for item in view.bank if search_text in f"{item.item_id}\t{item.text}".casefold()],
        passages=passages,
        total=total,
    )


def passage_hits(view: View, search_text: str) -> tuple[list[PassageHit], int]:
    """The first passages that contain this case-folded text, and the number of matches, up to a limit."""
    needle = search_text.encode(errors="replace")
    hits: list[PassageHit] = []
    total = 0
    for query_id, part in view.parts.items():
        folded, at = part.folded, -1
        while total < COUNTED and (at := folded.find(needle, at + 1)) >= 0:
            total += 1
            start, end = folded.rfind(b"\n", 0, at) + 1, folded.find(b"\n", at)
            if len(hits) < MOST:
                hits.append(_hit(view, query_id, folded.count(b"\n", 0, start), search_text))
            # One hit a passage.
            at = len(folded) if end < 0 else end
        if total >= COUNTED:
            break
    return hits, total


def _hit(view: View, query_id: str, row_index: int, search_text: str) -> PassageHit:
    state = view.query(query_id)
    assert state is not None
    text = " ".join((state.texts[row_index] or "").split())
    # Case folding may change lengths; then it is the neighbourhood.
    at = max(0, text.casefold().find(search_text))
    start = max(0, at - 60)
    around = ("…" if start else "") + text[start : at + 140] + ("…" if at + 140 < len(text) else "")
    return PassageHit(query_id, state.doc_ids[row_index], around)


ROUTES = [Route("/search", search)]
