"""Pages for organizers of a campaign: progress, agreement and adjudication."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from converters.overrides import ADJUDICATED
from converters.records import HumanRating, Item
from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.extensions.campaign.agreement import Disagreement, assessor_agreement
from trecexam.extensions.campaign.assessments import CellKey, ratings_by_assessor
from trecexam.extensions.campaign.progress import judging_progress
from trecexam.extensions.page import urls
from trecexam.extensions.page.assessing import choices_of, guidelines, plan_of
from trecexam.extensions.page.drawing import bar, link
from trecexam.extensions.page.listing import Address, listed
from trecexam.extensions.page.pages.assess import to_planned
from trecexam.extensions.page.pages.people import WITHDRAWN, rating_of
from trecexam.extensions.page.people import Choice, standing, text_of
from trecexam.extensions.page.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    grader_folder,
    live_of,
    remember,
    render,
    view_of,
    who_of,
)
from trecexam.extensions.page.tabled import drawn
from trecexam.features.override.overriding import seen_token, take
from trecexam.results.table import Layout, Table
from trecexam.results.view import Excerpt

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View


class DisagreementLine(NamedTuple):
    """A row of the page's disagreements.

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
        """Whether it is adjudicated."""
        return self.counts is not None and self.counts.kind == ADJUDICATED


def campaign(request: Request) -> Response:
    """Progress of each assessor, in total and by topic."""
    elsewhere = to_planned(request, "/campaign")
    if elsewhere is not None:
        return elsewhere
    folder, view = grader_folder(request), view_of(request)
    tables: dict[str, Table] = {}
    if plan_of(folder, view) is not None:
        tables = dict(live_of(request).call(view.own, judging_progress).tables)
        tables["sums"] = _by_topic(tables["topics"])
    work = {name: tables["assessors"][name] if tables else () for name in ("done", "tasks", "per_hour")}
    tables_drawn = {name: _with_bars(table) for name, table in tables.items()}
    trouble = ""
    try:
        guidelines(folder)
    except TrecexamError as error:
        trouble = str(error)
    return render(
        request, "campaign.html", assessors=tables_drawn.get("assessors"), topics=tables_drawn.get("topics"),
        sums=tables_drawn.get("sums"), n_done=sum(work["done"]), n_tasks=sum(work["tasks"]),
        timed=any(each is not None for each in work["per_hour"]),
        rule=folder.config.judging.rule, trouble=trouble,
    )  # fmt: skip


def _by_topic(topics: Table) -> Table:
    """A row per topic, summed over assessors."""
    header = ("query_id", "tasks", "done", "left", "judgments", "cannot")
    sums: dict[str, list[int]] = {}
    for _, query_id, *work in topics.rows:
        sums[str(query_id)] = list(map(add, sums.get(str(query_id), [0] * 5), work[:5]))
    return Table(header, tuple((topic, *of) for topic, of in sums.items()), layout=Layout(("query_id",)))


def _with_bars(table: Table) -> Excerpt:
    """The table with links to topics and progress bars."""
    column: dict[str, Any] = {name: table[name] for name in table.header}
    return drawn(table, draw={
        "query_id": lambda at: link(urls.query(column["query_id"][at]), column["query_id"][at]),
        "done": lambda at: bar(column["done"][at], column["tasks"][at]),
    })  # fmt: skip


def agreement(request: Request) -> Response:
    """Agreement of assessors, and the cells on which they differ."""
    view, address = view_of(request), Address.of(request)
    agreed = live_of(request).call(view.own, assessor_agreement)
    lines = [line for row in agreed.disagreements if (line := _line(view, row)) is not None]
    lines_listed = lines if address.get("which") == "all" else [line for line in lines if not line.is_decided]
    return render(
        request, "campaign_agreement.html", agreed=agreed, agreement=drawn(agreed.tables["agreement"]),
        rows=listed(lines_listed, address), n_all=len(lines),
        elsewhere=_elsewhere(agreed.disagreements, {line.row[:4] for line in lines}),
        n_open=sum(not line.is_decided for line in lines), who=who_of(request),
    )  # fmt: skip


def adjudicate(request: Request) -> Response:
    """Stores an adjudication, if the ratings are still those that were shown."""
    form, view, live = form_of(request), view_of(request), live_of(request)
    key = CellKey(form.get("query", ""), form.get("doc", ""), form.get("item", ""))
    folder, state = grader_folder(request), view.query(key.query_id)
    if state is None or state.place(key.doc_id) is None:
        raise NotFoundError("This passage is not in the pool any more.")
    rating = rating_of(form.get("rating", ""))
    back = urls.local(form.get("back", ""))
    try:
        decision = take(
            folder, standing(view, state), key.doc_id, key.item_id, rating, author_of(request),
            form.get("why", "").strip() or (WITHDRAWN if rating is None else ADJUDICATED),
            form.get("seen", ""), adjudicates=True,
            is_current=lambda: _seen(ratings_by_assessor(folder, key, view.scale)) == form.get("ratings", ""),
        )  # fmt: skip
    except RatingConflictError:
        live.reload()
        return go(request, back, "Nothing was saved: the ratings changed meanwhile. Look at both again.")
    live.reload(wait=0)
    rating_text = "" if rating is None else text_of(rating, choices_of(_item(state, key.item_id), view))
    message = f"{rating_text} counts now, by your decision." if rating_text else "The decision is withdrawn."
    return remember(go(request, back, message), decision.row.who)


def _line(view: View, row: Disagreement) -> DisagreementLine | None:
    """A row for a disagreement; None if its passage or item is no longer in the pool or bank."""
    state = view.query(row.query_id)
    row_index = None if state is None else state.place(row.doc_id)
    if state is None or row_index is None:
        return None
    item = _item(state, row.item_id)
    if row.item_id and item is None:
        return None
    choices = choices_of(item, view)
    counts = state.human.get((row.doc_id, row.item_id))
    return DisagreementLine(
        row,
        item,
        state.texts[row_index] or "",
        choices,
        {name: text_of(rating, choices) for name, rating in row.ratings.items()},
        _seen(row.ratings),
        counts,
        seen_token(counts),
    )


def _item(state: QueryView, item_id: str) -> Item | None:
    at = state.item(item_id)
    return None if at is None else at[1]


def _elsewhere(
    rows: Sequence[Disagreement], listed_keys: Collection[tuple[object, ...]]
) -> list[Disagreement]:
    """Disagreements on passages or items that are no longer in the pool or bank."""
    return [row for row in rows if row[:4] not in listed_keys]


def _seen(ratings: Mapping[str, int]) -> str:
    return "; ".join(f"{name} {rating}" for name, rating in sorted(ratings.items()))


ROUTES = [
    Route("/campaign", campaign),
    Route("/campaign/agreement", agreement),
    Route("/campaign/adjudicate", adjudicate, methods=["POST"]),
]
