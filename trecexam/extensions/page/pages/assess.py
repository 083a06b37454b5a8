"""Judging: one passage at a time with all its items, without its origin, grades or others' judgments."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from converters.overrides import CANNOT
from converters.records import HumanRating
from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.page.assessing import (
    Desk,
    DeskQuery,
    Question,
    Task,
    desk_queries,
    guidelines,
    plan_of,
)
from trecexam.extensions.page.pages.people import rating_of
from trecexam.extensions.page.people import standing
from trecexam.extensions.page.rendering import (
    NotFoundError,
    first_view_of,
    form_of,
    go,
    grader_folder,
    live_of,
    render,
    urls_of,
    view_of,
    who_of,
)
from trecexam.features.override.overriding import seen_token
from trecexam.inputs.typed_text import MAX_NOTE, MAX_WHY, typed

#: item_id ("" for the whole passage) -> new rating; None withdraws the last rating.
Wishes = dict[str, int | Literal["cannot"] | None]
#: Maximum seconds of work on a passage; longer times count as absence.
LONGEST = 600.0
_ELSEWHERE = (
    "You judged this passage in another window meanwhile. Nothing was saved: look at it, and save again."
)


def assess(request: Request) -> Response:
    """Show the next passage or the judged ones; a form stores a judgment."""
    if request.method == "POST":
        # Items are written one by one: another window of hers, or a second click, is to see all of them.
        with request.app.state.assessing.setdefault(who_of(request), Lock()):
            return _judged(request, _desk(request))
    urls = urls_of(request)
    if not who_of(request):
        return go(request, urls.who(back=urls.assess()))
    desk = _desk(request)
    elsewhere = to_planned(request, "assess")
    if elsewhere is not None:
        return elsewhere
    following = desk.next_open()
    if following is not None:
        return go(request, urls.assess_passage(following.name))
    n_tasks, n_open = len(desk.tasks), len(desk.open)
    return _render(
        request, "assess.html", n_tasks=n_tasks, n_open=n_open, last=_last(request, desk),
        who=desk.who, planned=desk.plan is not None, judged=desk.judged,
        query_texts={query_id: desk.view.queries[query_id] or query_id for query_id in desk.judged},
    )  # fmt: skip


def to_planned(request: Request, page: str) -> Response | None:
    """Redirect to this page of the grader whose passages are planned; None if that is here."""
    first = first_view_of(request)
    if "grader" in request.path_params or not first.other_views:
        return None
    folder, views = grader_folder(request), (first, *first.other_views.values())
    name = next((view.grader_name for view in views if plan_of(folder, view) is not None), first.grader_name)
    return None if name == first.grader_name else go(request, getattr(urls_of(request).of(name), page)())


def passage(request: Request) -> Response:
    """Show a passage with all its items and the assessor's judgments."""
    desk = _desk(request)
    task = _named(desk, request.path_params["passage"])
    questions, judgments, asks_why = desk.questions(task), desk.said(task), desk.folder.config.judging.reason
    whole, topic = judgments.get(""), [other for other in desk.tasks if other.query_id == task.query_id]
    still_open, following, before = frozenset(desk.open), desk.next_open(task), desk.before(task)
    html, missing_guidelines = guidelines(desk.folder)
    return _render(
        request,
        "assess_passage.html",
        task=task,
        query_text=desk.view.queries[task.query_id] or task.query_id,
        text=desk.text_of(task),
        questions=questions,
        picked={q.number: q.current.rating for q in questions if q.current},
        around={} if (state := desk.view.query(task.query_id)) is None else state.around,
        cannot=whole if whole is not None and whole.cannot else None,
        note=_note_of(judgments)[1],
        asks_why=asks_why,
        why=next((row.why for row in judgments.values() if not row.cannot), "") if asks_why else "",
        guidelines=html,
        missing_guidelines=missing_guidelines,
        token=desk.token(task),
        shown=desk.shown(task),
        places=_places(questions, judgments),
        following=following and following.name,
        back=before and before.name,
        topic=(sum(other not in still_open for other in topic), len(topic)),
        all_tasks=(len(desk.tasks) - len(still_open), len(desk.tasks)),
        last=_last(request, desk),
        now=f"{time.time():.1f}",
    )


def _desk(request: Request) -> Desk:
    who, view = who_of(request), view_of(request)
    if not who:
        raise NotFoundError("Nobody knows who you are: give your name at the page Judge.")
    desk_cache: dict[str, tuple[int, Mapping[str, DeskQuery]]] = request.app.state.desks
    if view.grader_name not in desk_cache or desk_cache[view.grader_name][0] != view.version:
        desk_cache[view.grader_name] = view.version, live_of(request).call(view.grader_name, desk_queries)
    return Desk(grader_folder(request), view, who, desk_cache[view.grader_name][1])


def _named(desk: Desk, name: str) -> Task:
    task = desk.named(name)
    if task is None or not desk.text_of(task):
        raise NotFoundError("This passage is no longer assigned to you.")
    return task


def _judged(request: Request, desk: Desk) -> Response:
    """Store a form's judgment of a passage."""
    form = form_of(request)
    task = _named(desk, form.get("passage", ""))
    judgments, task_url = desk.said(task), urls_of(request).assess_passage(task.name)
    if form.get("shown") != desk.shown(task):
        # Questions have numbers in the form: the same number may be another question by now.
        return go(
            request,
            task_url,
            "This passage or its questions changed meanwhile. Nothing was saved: check your ratings and "
            "save again.",
        )
    wishes = _wishes(form, desk.questions(task), judgments)
    if not wishes:
        return go(request, task_url, "Choose a rating first.")
    why, note = form.get("why", "").strip(), form.get("note", "").strip()
    try:
        typed("a note", note, MAX_NOTE)
        typed("a reason", why, MAX_WHY)
    except TrecexamError as error:
        return go(request, task_url, f"Nothing was saved: {error}.")
    asks_why, undoes = desk.folder.config.judging.reason, form.get("act") == "withdraw"
    if not undoes and not why and (CANNOT in wishes.values() or (asks_why and {*wishes.values()} != {None})):
        return go(request, task_url, "Nothing was saved: give a reason.")
    new = {
        item_id: wish
        for item_id, wish in wishes.items()
        if not _says(judgments.get(item_id), wish, why if asks_why or wish == CANNOT else "")
    }
    holder, noted = _note_of(judgments)
    holder = holder if holder is not None else next(iter(wishes))
    if not undoes and note != noted and holder not in new:
        row = judgments.get(holder)
        new[holder] = wishes[holder] if row is None else "cannot" if row.cannot else row.rating
    if new and form.get("seen", "") != desk.token(task):
        return go(request, task_url, _ELSEWHERE)
    seconds = _seconds(form, len(new))
    state = desk.view.query(task.query_id)
    assert state is not None
    try:
        for item_id, wish in new.items():
            row = judgments.get(item_id)
            recorded = record_assessment(
                desk.folder, standing(desk.view, state), task.doc_id, item_id, wish,
                who=desk.who, why=why, note=note if item_id == holder else "", seconds=seconds,
                seen=seen_token(row),
            )  # fmt: skip
            while not item_id and wish is None and recorded.cannot and not undoes:
                # What she said before was that she cannot judge it, too, and she can after all.
                recorded = record_assessment(
                    desk.folder, standing(desk.view, state), task.doc_id, "", None,
                    who=desk.who, seconds=seconds, seen=seen_token(recorded),
                )  # fmt: skip
            desk.take(recorded)
    except RatingConflictError:
        return go(request, task_url, _ELSEWHERE)
    if new:
        live_of(request).reload(wait=0)
    try:
        return _gone_on(request, desk, task, new)
    except TrecexamError as error:
        # Confirm the stored judgment in any case.
        return go(request, urls_of(request).assess(), f"Saved. {error}")


def _gone_on(request: Request, desk: Desk, task: Task, new: Wishes) -> Response:
    """Redirect to the next task, with a link to undo this judgment."""
    urls = urls_of(request)
    task_url = urls.assess_passage(task.name)
    if form_of(request).get("act") == "withdraw":
        return go(request, task_url, "Taken back.")
    left = sum(question.current is None for question in desk.questions(task))
    if not desk.is_done(task):
        return go(request, task_url, f"Saved; {left} more here.")
    following = desk.next_open(task)
    undo = {
        "after": task.name,
        "places": _places(
            desk.questions(task), [item_id for item_id, wish in new.items() if wish is not None]
        ),
        "shown": desk.shown(task),
    }
    if following is None:
        return go(request, urls.assess(**undo))
    other = following.query_id != task.query_id and all(row.query_id != task.query_id for row in desk.open)
    message = "That topic is finished; this is the next one." if other else ""
    return go(request, urls.assess_passage(following.name, **undo), message)


def _wishes(
    form: Mapping[str, str], questions: Sequence[Question], judgments: Mapping[str, HumanRating]
) -> Wishes:
    """Return the judgments in a form.

    Raises:
        TrecexamError: a rating that is not among the choices.
    """
    if form.get("act") == "withdraw":
        numbers = form.get("places", "").split(".")
        item_ids = {"0": "", **{str(question.number): question.item_id for question in questions}}
        return {item_ids[number]: None for number in numbers if item_ids.get(number) in judgments}
    if form.get("act") == "cannot":
        return {"": "cannot"}
    wishes: Wishes = {}
    for question in questions:
        text = form.get(f"item-{question.number}", "")
        if not text:
            continue
        rating = rating_of(text)
        if rating not in {choice.value for choice in question.choices}:
            raise TrecexamError("that rating is not on the scale")
        wishes[question.item_id] = rating
    if wishes and "" not in wishes and "" in judgments and judgments[""].cannot:
        # She can judge it after all.
        wishes[""] = None
    return wishes


def _says(row: HumanRating | None, wish: int | str | None, why: str) -> bool:
    """Return True if this equals her current judgment."""
    if row is None or wish is None:
        return row is None and wish is None
    return (CANNOT if row.cannot else row.rating) == wish and why in ("", row.why)


def _note_of(judgments: Mapping[str, HumanRating]) -> tuple[str | None, str]:
    """Return the note on a passage, and the item_id that it is stored with (None without one)."""
    return next(((item_id, row.note) for item_id, row in judgments.items() if row.note), (None, ""))


def _seconds(form: Mapping[str, str], n: int) -> float | None:
    """Seconds of work per judgment: time since the page was shown, minus time when it was hidden."""
    try:
        elapsed = time.time() - float(form.get("now", ""))
        seconds = min(elapsed, float(form.get("active") or elapsed), LONGEST)
    except ValueError:
        return None
    return round(seconds / n, 1) if n and seconds >= 0 else None


def _places(questions: Sequence[Question], item_ids: Collection[str]) -> str:
    """Return the numbers of these questions of a passage, for an address; 0 is the whole passage."""
    numbers = [str(question.number) for question in questions if question.item_id in item_ids]
    is_asked = any(not question.item_id for question in questions)
    return ".".join([*numbers, *(["0"] if "" in item_ids and not is_asked else [])])


def _last(request: Request, desk: Desk) -> dict[str, str] | None:
    """Return the last judgment, to undo it; None if there is none or it was undone."""
    task = desk.named(request.query_params.get("after", ""))
    if task is None or not desk.text_of(task) or not desk.said(task):
        return None
    if request.query_params.get("shown") != desk.shown(task):
        return None
    return {
        "name": task.name,
        "places": request.query_params.get("places", ""),
        "token": desk.token(task),
        "shown": desk.shown(task),
    }


def _render(request: Request, template: str, **values: Any) -> Response:
    """Render a page without the organizer's links: organizers judge as blind as assessors."""
    view, first = view_of(request), first_view_of(request)
    names = (first.grader_name, *first.other_views) if first.other_views else ()
    switches = [(name, urls_of(request).of(name).assess(), name == view.grader_name) for name in names]
    return render(request, template, **values, sees_all=False, switches=switches)


ROUTES = [
    Route("/assess", assess, methods=["GET", "POST"]),
    Route("/assess/passage/{passage:name}", passage),
]
