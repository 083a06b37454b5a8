"""What to judge next, one judgment per page: rate, skip, back, undo."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import cookies, urls
from trecexam.extensions.page.answers import GraderAnswers, of_passage
from trecexam.extensions.page.judging import JudgeNext, JudgmentQueue, Key, Wish
from trecexam.extensions.page.marking import marked, marked_support
from trecexam.extensions.page.pages.passages import cells_of
from trecexam.extensions.page.people import choices, words_of
from trecexam.extensions.page.rendering import NotFoundError, go, render, view_of, who_of
from trecexam.extensions.page.users import user_of
from trecexam.features.override.overriding import seen_token

if TYPE_CHECKING:
    from trecexam.extensions.page.trails import Trail
    from trecexam.extensions.page.view import View

#: The cookie of a browser's trail; seconds that the first list is waited for.
TRAIL, FIRST_LOOK = "trecexam-trail", 0.1
#: The reason that is proposed.
WHY = "asked by judge-next"


def judge(request: Request) -> Response:
    """The named judgment, or the best open one."""
    view = view_of(request)
    queue = _queue(request, view)
    cookie, trail = _trail(request)
    params = request.query_params
    if "query" not in params:
        # Named in the address, so that a new list does not put another one under the reader's eyes.
        best = next(iter(_open(request, view, queue, trail)), None)
        response = (
            _nothing(request, view, queue, trail) if best is None else go(request, _address(request, best))
        )
    else:
        named = Key(params["query"], params.get("doc", ""), params.get("item", ""))
        response = _judgment_page(request, view, queue, trail, named)
        trail.visit(named)
    return _remember(response, cookie)


def step(request: Request) -> Response:
    """Redirects to the next or the previous judgment."""
    view = view_of(request)
    cookie, trail = _trail(request)
    params = request.query_params
    key = Key(params.get("query", ""), params.get("doc", ""), params.get("item", ""))
    if request.path_params["way"] == "previous":
        next_key: Key | None = trail.before(key) or key
    else:
        trail.visit(key)
        next_key = trail.after(key) or next(iter(_open(request, view, _queue(request, view), trail)), None)
    return _remember(go(request, _address(request, next_key)), cookie)


def again(request: Request) -> Response:
    """Shows skipped judgments again."""
    cookie, trail = _trail(request)
    trail.seen.clear()
    return _remember(go(request, _address(request, None)), cookie)


def rated(request: Request, key: Key, rating: int | None, why: str, message: str) -> Response:
    """Redirects after a rating to the next judgment, or after an undo to the same one."""
    view = view_of(request)
    cookie, trail = _trail(request)
    if rating is None:
        trail.forget(key)
        return back_to(request, key, message)
    trail.visit(key)
    trail.rate(key, why)
    next_key = trail.after(key) or next(iter(_open(request, view, _queue(request, view), trail)), None)
    return _remember(go(request, _address(request, next_key), message), cookie)


def back_to(request: Request, key: Key, message: str) -> Response:
    """Redirects to this judgment with a message."""
    return go(request, _address(request, key), message)


def _judgment_page(request: Request, view: View, queue: JudgmentQueue, trail: Trail, key: Key) -> Response:
    """A passage to rate, or a citation, which shows others' labels only after one's own."""
    state = view.query(key.query_id)
    row_index = None if state is None else state.place(key.doc_id)
    if state is None or row_index is None:
        raise NotFoundError(f"'{key.doc_id}' is not in the pool of query '{key.query_id}' any more.")
    human, who = state.human.get((key.doc_id, key.item_id)), who_of(request)
    is_blind = view.is_cited and (human is None or human.who != who)
    answers = GraderAnswers({}) if is_blind else of_passage(Path(view.store), view, state, row_index)
    cells = cells_of(state, row_index, answers.by_id)
    if is_blind:
        cells = [replace(each, rating=None, machine=None, status="", human=None) for each in cells]
    cell = next((candidate for candidate in cells if candidate.item.item_id == key.item_id), None)
    if (cell is not None) != view.is_cited or (cell is None and key.item_id):
        raise NotFoundError(f"Query '{key.query_id}' has no item '{key.item_id}' to judge here.")
    text = state.texts[row_index] or ""
    best = max(
        cells, key=lambda candidate: -1 if candidate.machine is None else candidate.machine, default=None
    )
    focus = cell or best
    answer = focus.answer.text if focus and focus.answer else ""
    return render(
        request,
        "judge.html",
        queue=queue,
        wish=wish_fields(wish_of(request)),
        measures=view.values.measures,
        key=key,
        row=next((row for row in queue.by_query.get(key.query_id, ()) if row.key == key), None),
        state=state,
        place=row_index,
        text=text,
        spans=marked_support(text, cell.item.text) if view.is_cited and cell else marked(text, answer),
        cell=cell,
        cells=cells,
        choices=choices(view, whole=not key.item_id),
        human=None if is_blind else human,
        words=words_of(view, whole=not key.item_id),
        others_said=is_blind and human is not None,
        is_blind=is_blind,
        token=seen_token(human),
        who=who,
        why=trail.why or WHY,
        undo=_undone(view, trail),
        back=trail.before(key),
        **_counts(request, view, queue, trail, key),
        stale=queue.stale(view.version),
    )


def _undone(view: View, trail: Trail) -> dict[str, object] | None:
    """The browser's last rating, to undo it; None without one, or if it was replaced."""
    key = trail.rated[-1] if trail.rated else None
    state = None if key is None else view.query(key.query_id)
    row = None if state is None or key is None else state.human.get((key.doc_id, key.item_id))
    return None if row is None else {"key": key, "row": row, "token": seen_token(row)}


def _counts(
    request: Request, view: View, queue: JudgmentQueue, trail: Trail, displayed_key: Key
) -> dict[str, int]:
    """Count the judgments that people made, and the open ones that this browser skipped and did not skip."""
    judged = (item_id for query_id in view.heads for _, item_id in _judged(request, view, query_id))
    return {
        "rated": sum(bool(item_id) is view.is_cited for item_id in judged),
        "left": len(_open(request, view, queue, trail, displayed_key)),
        "skipped": len(_skipped(request, view, trail) - {displayed_key}),
    }


def _skipped(request: Request, view: View, trail: Trail) -> set[Key]:
    """Open judgments that this browser was shown."""
    return {
        key
        for key in trail.seen
        if key.query_id in view.heads and key[1:] not in _judged(request, view, key.query_id)
    }


def _nothing(request: Request, view: View, queue: JudgmentQueue, trail: Trail) -> Response:
    return render(
        request,
        "judge_none.html",
        queue=queue,
        wish=wish_fields(wish_of(request)),
        measures=view.values.measures,
        skipped=len(_skipped(request, view, trail)),
        undo=_undone(view, trail),
        stale=queue.stale(view.version),
    )


def _queue(request: Request, view: View) -> JudgmentQueue:
    judging: JudgeNext | None = request.app.state.judging
    if judging is None:
        return JudgmentQueue(failure="this page was started without judge-next")
    judge_list = judging.of(wish_of(request)._replace(grader=view.own))
    judge_list.want(view.version)
    return judge_list.wait(FIRST_LOOK)


def wish_of(request: Request) -> Wish:
    """The list selected by the address or form."""
    params = request.scope["form"] if request.method == "POST" else request.query_params
    return Wish(params.get("by", "")[:200])


def wish_fields(wish: Wish) -> dict[str, str | None]:
    """The selected list as fields of an address or form; None for defaults."""
    return {"by": wish.measure or None}


def _open(
    request: Request, view: View, queue: JudgmentQueue, trail: Trail, displayed_key: Key | None = None
) -> list[Key]:
    """Open judgments that this browser was not shown yet, best first.

    Args:
        displayed_key: what it is shown now: it counts, however often the page is fetched.
    """
    judged = {
        query_id: _judged(request, view, query_id) for query_id in queue.by_query if query_id in view.heads
    }
    return [
        row.key
        for row in queue.best
        if (row.key not in trail.seen or row.key == displayed_key)
        and row.key.query_id in judged
        and row.key[1:] not in judged[row.key.query_id]
    ]


def _judged(request: Request, view: View, query_id: str) -> Collection[tuple[str, str]]:
    """(doc_id, item_id) of what people rated of a query."""
    if not view.heads[query_id].human:
        return ()
    cache: dict[tuple[str, str], tuple[object, frozenset[tuple[str, str]]]] = request.app.state.judged
    part, at = view.parts[query_id], (view.own, query_id)
    # Opening hundreds of queries for each page would take too long.
    if at not in cache or cache[at][0] is not part:
        state = view.query(query_id)
        cache[at] = part, frozenset(() if state is None else state.human)
    return cache[at][1]


def _address(request: Request, key: Key | None) -> str:
    named = {} if key is None else {"query": key.query_id, "doc": key.doc_id, "item": key.item_id}
    return urls.judge(**named, **wish_fields(wish_of(request)))


def _trail(request: Request) -> tuple[str, Trail]:
    trail: tuple[str, Trail] = request.app.state.trails.of(
        request.cookies.get(TRAIL, ""), user_of(request), view_of(request).own
    )
    return trail


def _remember(response: Response, cookie: str) -> Response:
    cookies.keep(response, TRAIL, cookie)
    return response


ROUTES = [
    Route("/judge", judge),
    Route("/judge/again", again, methods=["POST"]),
    Route("/judge/{way:str}", step),
]
