"""Does a cited passage support the sentence that cites it? One question a page, without run and grader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from starlette.routing import Route

from converters.errors import ConversionError
from converters.support_labels import LABELS
from trecexam.bank.model import Bank
from trecexam.errors import RatingConflictError
from trecexam.extensions.page import cookies, urls
from trecexam.extensions.page.answers import of_cited
from trecexam.extensions.page.judging import Key
from trecexam.extensions.page.marking import marked_support
from trecexam.extensions.page.pages.people import WITHDRAWN, rating_of
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    live_of,
    remember,
    render,
    view_of,
    who_of,
)
from trecexam.extensions.page.users import user_of
from trecexam.features.override.overriding import seen_token, take
from trecexam.files.stamps import stamp
from trecexam.line.input_files import read_overrides_file
from trecexam.line.overrides import resolve
from trecexam.line.track_graders import open_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from converters.records import HumanRating, Item
    from trecexam.extensions.page.support_queue import CitedSentence, SupportQueue
    from trecexam.extensions.page.trails import Trail

#: The cookie of a browser's trail, and the reason that is proposed.
TRAIL, WHY = "trecexam-support-trail", "asked by judge-next"


def support(request: Request) -> Response:
    """The next sentence to label, or what was labelled of all of them; with a form, takes a label."""
    queue = _queue(request)
    if request.method == "POST":
        return _label(request, queue)
    cookie, trail = _trail(request)
    best = next(iter(_open(request, queue, trail)), None)
    if best is not None:
        return _remember(go(request, urls.cited_sentence(best.name)), cookie)
    labelled = _labelled(request, queue)
    skipped = sum(s.key not in labelled and s.key in trail.seen for s in queue.sentences)
    counts, undo = view_of(request).support_counts, _undone(queue, labelled, trail)
    page = render(request, "support_none.html", skipped=skipped, counts=counts, undo=undo)
    return _remember(page, cookie)


def sentence_page(request: Request) -> Response:
    """A sentence beside a passage that it cites; what others said of it only after one's own label."""
    queue = _queue(request)
    sentence = _named(queue, request.path_params["sentence"])
    cookie, trail = _trail(request)
    labelled, key = _labelled(request, queue), Key(*sentence.key)
    human, passage, view = labelled.get(key), queue.texts[key.doc_id], view_of(request)
    own = human is not None and human.who == who_of(request)
    page = render(
        request,
        "support.html",
        sentence=sentence,
        query_text=view.heads[key.query_id].text if key.query_id in view.heads else "",
        spans=marked_support(passage, sentence.item.text),
        labels=LABELS,
        human=human,
        own=own,
        answer=of_cited(Path(view.store), queue.grader_digest, sentence.item, passage) if own else None,
        token=seen_token(human),
        who=who_of(request),
        why=trail.why or WHY,
        undo=_undone(queue, labelled, trail),
        back=trail.before(key),
        left=len(_open(request, queue, trail, shown=key)),
    )
    trail.visit(key)
    return _remember(page, cookie)


def step(request: Request) -> Response:
    """To the next one, or back."""
    queue = _queue(request)
    cookie, trail = _trail(request)
    sentence = queue.by_name.get(request.query_params.get("sentence", ""))
    key = None if sentence is None else Key(*sentence.key)
    if key is None or request.path_params["way"] == "previous":
        return _remember(
            go(request, _address(queue, None if key is None else trail.before(key) or key)), cookie
        )
    trail.visit(key)
    return _remember(go(request, _after(request, queue, trail, key)), cookie)


def again(request: Request) -> Response:
    """Shows what was skipped once more."""
    cookie, trail = _trail(request)
    trail.seen.clear()
    return _remember(go(request, urls.support()), cookie)


def _label(request: Request, queue: SupportQueue) -> Response:
    """Takes a label, or takes it back."""
    form, live = form_of(request), live_of(request)
    sentence = _named(queue, form.get("sentence", ""))
    rating = rating_of(form.get("rating", ""))
    why = form.get("why", "") or (WITHDRAWN if rating is None else "")
    where, cookie, trail = urls.cited_sentence(sentence.name), *_trail(request)
    try:
        row, _, written, _ = take(
            open_folder(live.root, queue.grader), queue.to_rate(sentence), sentence.key[1],
            sentence.item.item_id, rating, author_of(request), why, form.get("seen") or None,
        )  # fmt: skip
    except RatingConflictError as error:
        # What they said is not told: one's own label is not in yet.
        who = "that was withdrawn" if error.now is None else f"{error.now.who} labelled it"
        message = f"Nothing of yours is written: meanwhile {who}. Label it again, if yours is to count."
        return _remember(go(request, where, message), cookie)
    if written:
        live.reload(wait=0)
        if request.app.state.grader is not None:
            request.app.state.grader.ask()
    key = Key(*sentence.key)
    if rating is None:
        trail.forget(key)
        return remember(_remember(go(request, where, "Your label is withdrawn."), cookie), row.who)
    trail.visit(key)
    trail.rate(key, form.get("why", ""))
    message = f"{LABELS[rating]} by {row.who} counts now."
    return remember(_remember(go(request, _after(request, queue, trail, key), message), cookie), row.who)


def _queue(request: Request) -> SupportQueue:
    """What can be labelled.

    Raises:
        NotFoundError: nothing.
    """
    part = view_of(request).support
    if part is None:
        raise NotFoundError("Nothing that responses cite is graded here: it needs [graders.support].")
    return part.queue


def _named(queue: SupportQueue, name: str) -> CitedSentence:
    sentence = queue.by_name.get(name)
    if sentence is None:
        raise NotFoundError("No response has this sentence with this citation any more.")
    return sentence


def _labelled(request: Request, queue: SupportQueue) -> Mapping[tuple[str, str, str], HumanRating]:
    """What people say by overrides.tsv as it is now."""
    folder = open_folder(live_of(request).root, queue.grader)
    path = folder.overrides()
    token = id(queue), stamp(path)
    kept = request.app.state.labelled
    if kept is None or kept[0] != token:
        try:
            rows = read_overrides_file(path)[0]
        except ConversionError:
            # There is none yet; or what is wrong with it is among what was rejected.
            rows = ()
        items: dict[str, list[Item]] = {}
        cited: dict[str, set[tuple[str, str, str]]] = {}
        for query_id, item_id in dict.fromkeys((row.query_id, row.item_id) for _, row in rows):
            item, doc_ids = queue.citing.get((query_id, item_id), (None, ()))
            if item is not None:
                items.setdefault(query_id, []).append(item)
                keys = {(query_id, doc_id, item_id) for doc_id in doc_ids}
                cited[query_id] = cited.get(query_id, set()) | keys
        bank = Bank({query_id: tuple(of_query) for query_id, of_query in items.items()}, {})
        pool = {query_id: tuple(sorted({key[1] for key in keys})) for query_id, keys in cited.items()}
        ratings = resolve(
            rows, folder.shown(path), bank, pool, queue.texts, queue.max_rating,
            cited=frozenset().union(*cited.values()),
        ).ratings  # fmt: skip
        # The queue is kept with it, so that no other one has its id.
        kept = request.app.state.labelled = token, ratings, queue
    ratings_now: Mapping[tuple[str, str, str], HumanRating] = kept[1]
    return ratings_now


def _open(
    request: Request, queue: SupportQueue, trail: Trail, shown: Key | None = None
) -> list[CitedSentence]:
    """Those that nobody labelled and that this browser was not shown before, the first to label first.

    Args:
        shown: what it is shown now: it counts, however often the page is fetched.
    """
    labelled = _labelled(request, queue)
    return [
        sentence
        for sentence in queue.sentences
        if sentence.key not in labelled and (sentence.key not in trail.seen or sentence.key == shown)
    ]


def _after(request: Request, queue: SupportQueue, trail: Trail, key: Key) -> str:
    """Where to go on: to what was shown after this one, or to the next that is open."""
    shown = trail.after(key)
    best = next(iter(_open(request, queue, trail)), None)
    return (
        _address(queue, shown)
        if shown
        else urls.support()
        if best is None
        else urls.cited_sentence(best.name)
    )


def _address(queue: SupportQueue, key: Key | None) -> str:
    named = None if key is None else queue.by_key.get(key)
    return urls.support() if named is None else urls.cited_sentence(named.name)


def _undone(
    queue: SupportQueue, labelled: Mapping[tuple[str, str, str], HumanRating], trail: Trail
) -> dict[str, object] | None:
    """The browser's last label, which can be taken back; None where none is there, or counts any more."""
    if not trail.rated:
        return None
    sentence, row = queue.by_key.get(trail.rated[-1]), labelled.get(trail.rated[-1])
    return (
        None
        if row is None or sentence is None
        else {"sentence": sentence, "row": row, "token": seen_token(row)}
    )


def _trail(request: Request) -> tuple[str, Trail]:
    trail: tuple[str, Trail] = request.app.state.support_trails.of(
        request.cookies.get(TRAIL, ""), who=user_of(request)
    )
    return trail


def _remember(response: Response, cookie: str) -> Response:
    cookies.keep(response, TRAIL, cookie)
    return response


ROUTES = [
    Route("/support", support, methods=["GET", "POST"]),
    Route("/support/again", again, methods=["POST"]),
    Route("/support/sentence/{sentence:name}", sentence_page),
    Route("/support/{way:str}", step),
]
