"""How far assessors are, how far they agree, and where somebody decides between them: for organizers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from starlette.routing import Route

from converters.overrides import ADJUDICATED
from converters.records import HumanRating, Item
from converters.support_labels import LABELS
from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.extensions.campaign.agreement import Disagreement, assessor_agreement
from trecexam.extensions.campaign.assessments import CellKey, ratings_by_assessor
from trecexam.extensions.campaign.plan import read_plan
from trecexam.extensions.campaign.progress import judging_progress
from trecexam.extensions.page import urls
from trecexam.extensions.page.assessing import Choice, choices_of, guidelines, text_of
from trecexam.extensions.page.downloads import table_file
from trecexam.extensions.page.listing import Address, listed
from trecexam.extensions.page.pages.people import WITHDRAWN, rating_of
from trecexam.extensions.page.people import standing, with_people
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    live_of,
    rated_folder,
    remember,
    render,
    view_of,
    who_of,
)
from trecexam.features.override.overriding import seen_token, take
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.support_queue import CitedSentence
    from trecexam.extensions.page.view import View


class DisagreementLine(NamedTuple):
    """A cell on which people differ, as the page shows it.

    Attributes:
        item: None for the passage as a whole; `text` is the passage's.
        ratings: assessor -> her rating in words; `seen` has them all, to tell them from others.
        counts: the rating that counts, None where none does; `token` is its `seen_token`.
    """

    row: Disagreement
    item: Item | None
    text: str
    choices: tuple[Choice, ...]
    ratings: Mapping[str, str]
    seen: str
    counts: HumanRating | None
    token: str

    @property
    def is_decided(self) -> bool:
        """Whether somebody decided between them."""
        return self.counts is not None and self.counts.kind == ADJUDICATED


def campaign(request: Request) -> Response:
    """How far each assessor is, by topic too."""
    live = live_of(request)
    folder = rated_folder(request)
    view_of(request)
    progress = None if read_plan(folder) is None else live.call(judging_progress)
    if progress is not None:
        tables = dict(progress.tables)
        file = table_file(Address.of(request), tables)
        if file is not None:
            return file
    trouble = ""
    try:
        guidelines(folder)
    except TrecexamError as error:
        trouble = str(error)
    return render(request, "campaign.html", progress=progress, judging=folder.config.judging, trouble=trouble)


def agreement(request: Request) -> Response:
    """How far assessors agree, and the cells on which they differ."""
    live, view, address = live_of(request), view_of(request), Address.of(request)
    folder = rated_folder(request)
    agreed = live.call(assessor_agreement)
    if view.support is not None:
        cited = live.call(assessor_agreement, cited=True)
        agreed = replace(
            agreed,
            rows=(*agreed.rows, *cited.rows),
            disagreements=(*agreed.disagreements, *cited.disagreements),
        )
    tables = dict(agreed.tables)
    file = table_file(address, tables)
    if file is not None:
        return file
    lines = [line for row in agreed.disagreements if (line := _line(folder, view, row)) is not None]
    shown = lines if address.get("which") == "all" else [line for line in lines if not line.is_decided]
    return render(
        request, "campaign_agreement.html", agreed=agreed, rows=listed(shown, address), n_all=len(lines),
        elsewhere=_elsewhere(view, agreed.disagreements, {line.row[:4] for line in lines}),
        n_open=sum(not line.is_decided for line in lines), who=who_of(request),
    )  # fmt: skip


def adjudicate(request: Request) -> Response:
    """Takes what somebody decided between assessors; what they say must still be what was shown."""
    form, view, live = form_of(request), view_of(request), live_of(request)
    key = CellKey(form.get("query", ""), form.get("doc", ""), form.get("item", ""))
    folder, state = rated_folder(request), view.query(key.query_id)
    if state is None or state.place(key.doc_id) is None:
        raise NotFoundError("This passage is not in the pool any more.")
    rating = rating_of(form.get("rating", ""))
    back = urls.local(form.get("back", ""))
    try:
        decision = take(
            folder, standing(view, state), key.doc_id, key.item_id, rating, author_of(request),
            form.get("why", "").strip() or (WITHDRAWN if rating is None else ADJUDICATED),
            form.get("seen", ""), adjudicates=True,
            is_current=lambda: _seen(ratings_by_assessor(folder, key)) == form.get("ratings", ""),
        )  # fmt: skip
    except RatingConflictError:
        live.reload()
        return go(request, back, "Nothing is written: the ratings changed meanwhile. Look at both again.")
    live.patch(key.query_id, lambda view, state: with_people(folder, view, state))
    if request.app.state.grader is not None:
        request.app.state.grader.ask()
    message = "The decision is taken back." if rating is None else f"{rating} counts now, by your decision."
    return remember(go(request, back, message), decision.row.who)


def _line(folder: TrackFolder, view: View, row: Disagreement) -> DisagreementLine | None:
    """None for what this page does not show: what is not in the pool, or the bank, now."""
    state = view.query(row.query_id)
    place = None if state is None else state.place(row.doc_id)
    if state is None or place is None:
        return None
    at = state.item(row.item_id)
    if row.item_id and at is None:
        return None
    item = None if at is None else at[1]
    choices = choices_of(item, folder, view)
    counts = state.human.get((row.doc_id, row.item_id))
    return DisagreementLine(
        row,
        item,
        state.texts[place] or "",
        choices,
        {name: text_of(rating, choices) for name, rating in row.ratings.items()},
        _seen(row.ratings),
        counts,
        seen_token(counts),
    )


def _elsewhere(
    view: View, rows: Sequence[Disagreement], shown: Collection[tuple[object, ...]]
) -> list[tuple[Disagreement, CitedSentence | None, dict[str, str]]]:
    """Those that this page decides nothing of, with the sentence of a response, and the labels in words."""
    cited = {} if view.support is None else view.support.queue.by_key
    return [
        (
            row,
            cited.get((row.query_id, row.doc_id, row.item_id)),
            {
                name: LABELS[rating].replace("_", " ") if row.level == "citation" else str(rating)
                for name, rating in row.ratings.items()
            },
        )
        for row in rows
        if row[:4] not in shown
    ]


def _seen(ratings: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {rating}" for name, rating in sorted(ratings.items()))


ROUTES = [
    Route("/campaign", campaign),
    Route("/campaign/agreement", agreement),
    Route("/campaign/adjudicate", adjudicate, methods=["POST"]),
]
