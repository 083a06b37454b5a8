"""The data of the assessors' pages: passages under opaque names, with their items."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from converters.records import HumanRating, Item
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.assessments import (
    CellKey,
    is_done,
    items_to_judge,
    own_assessments,
)
from trecexam.extensions.campaign.plan import JudgingPlan, read_plan
from trecexam.extensions.page.gather import human_ratings
from trecexam.extensions.page.people import Choice, choices, text_of
from trecexam.features.override.overriding import seen_token
from trecexam.files.cache import memoized
from trecexam.files.kept import read_kept, write_kept
from trecexam.files.track_lock import exclusive_lock
from trecexam.folder import TrackFolder
from trecexam.grades.cell_order import retrieved_weights
from trecexam.inputs.overrides import takes_back

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View
    from trecexam.grades.graded_track import GradedTrack

#: Length of a passage's opaque name.
_LETTERS = 16
#: Bytes of the secret, stored in hexadecimal digits.
_SECRET_BYTES = 32


class Task(NamedTuple):
    """A passage that an assessor judges; `name` is its opaque name in addresses."""

    name: str
    query_id: str
    doc_id: str


class Question(NamedTuple):
    """An item to judge on a passage.

    Attributes:
        number: from 1.
        item: the item; None for the whole passage.
        choices: the ratings to choose from.
        current: the assessor's current rating, or None.
    """

    number: int
    item: Item | None
    choices: tuple[Choice, ...]
    current: HumanRating | None

    @property
    def item_id(self) -> str:
        return "" if self.item is None else self.item.item_id


class Desk:
    """The tasks and judgments of one assessor; reads the files again.

    Args:
        queries: see `desk_queries`.
    """

    def __init__(self, folder: TrackFolder, view: View, who: str, queries: Mapping[str, DeskQuery]) -> None:
        self.folder, self.view, self.who, self._queries = folder, view, who, queries
        self._secret = secret_of(folder)
        self.plan = plan_of(folder, view)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks in order: the plan's, or all that nobody else judged, most retrieved first."""
        planned = () if self.plan is None else self.plan.get(self.who, ())
        pairs = self._unplanned() if self.plan is None else (task[1:3] for task in planned)
        return tuple(Task(name_of(self._secret, *pair), *pair) for pair in pairs)

    @cached_property
    def opinions(self) -> dict[CellKey, HumanRating]:
        """Her judgment of each cell."""
        return own_assessments(self.folder, self.who, self.view.scale)

    def take(self, judgment: HumanRating) -> None:
        """Replace her judgments by those just written."""
        self.opinions.pop(CellKey(*judgment[:3]), None)
        if not takes_back(judgment):
            self.opinions[CellKey(*judgment[:3])] = judgment

    @property
    def open(self) -> tuple[Task, ...]:
        """The open tasks, in order."""
        # Few of many tasks are begun.
        begun = {key[:2] for key in self.opinions}
        return tuple(task for task in self.tasks if task[1:] not in begun or not self.is_done(task))

    def item_ids(self, query_id: str, doc_id: str) -> tuple[str, ...]:
        """Return the item_ids to judge on a passage; "" is the whole passage."""
        query = self._queries.get(query_id)
        if query is None:
            return ("",)
        return query.item_ids if query.citing is None else query.citing.get(doc_id, ())

    def is_done(self, task: Task) -> bool:
        """Return True if she finished this task."""
        return is_done(self.opinions, task.query_id, task.doc_id, self.item_ids(task.query_id, task.doc_id))

    def named(self, name: str) -> Task | None:
        """Return the task of this name; without a plan also a task that a colleague finished meanwhile."""
        pairs = ((query_id, doc_id) for query_id, query in self._queries.items() for doc_id in query.doc_ids)
        other_tasks = (Task(name_of(self._secret, *pair), *pair) for pair in pairs if self.plan is None)
        return next((task for task in chain(self.tasks, other_tasks) if task.name == name), None)

    def next_open(self, after: Task | None = None) -> Task | None:
        """Return the next open task with a text: after this one, else before it."""
        at = self.tasks.index(after) + 1 if after in self.tasks else 0
        open_tasks = frozenset(self.open) - {after}
        ordered = (*self.tasks[at:], *self.tasks[:at])
        return next((task for task in ordered if task in open_tasks and self.text_of(task)), None)

    def before(self, task: Task) -> Task | None:
        """Return the previous task."""
        at = self.tasks.index(task) if task in self.tasks else 0
        return next((other for other in reversed(self.tasks[:at]) if self.text_of(other)), None)

    def text_of(self, task: Task) -> str | None:
        """Return the passage's text; None without one, or if the passage left the pool."""
        state = self.view.query(task.query_id)
        row_index = None if state is None else state.place(task.doc_id)
        return None if state is None or row_index is None else state.texts[row_index]

    def questions(self, task: Task) -> tuple[Question, ...]:
        """Return the items to judge on a passage, with the assessor's current judgments."""
        state = self.view.query(task.query_id)
        assert state is not None
        items = {item.item_id: item for item in state.items}
        return tuple(
            Question(
                number,
                items.get(item_id),
                choices(self.view, items.get(item_id)),
                self.opinions.get(CellKey(task.query_id, task.doc_id, item_id)),
            )
            for number, item_id in enumerate(self.item_ids(task.query_id, task.doc_id), 1)
        )

    def said(self, task: Task) -> dict[str, HumanRating]:
        """item_id -> her judgment of a passage; "" is the whole passage."""
        cells = dict.fromkeys((*self.item_ids(task.query_id, task.doc_id), ""))
        keys = {item_id: CellKey(task.query_id, task.doc_id, item_id) for item_id in cells}
        return {item_id: self.opinions[key] for item_id, key in keys.items() if key in self.opinions}

    @property
    def judged(self) -> dict[str, list[tuple[Task, str]]]:
        """query_id -> the passages with a text that she judged, each with her judgment in words."""
        judged: dict[str, list[tuple[Task, str]]] = {}
        for task in self.tasks:
            judgments = self.said(task)
            if judgments and self.text_of(task):
                judged.setdefault(task.query_id, []).append((task, self._in_words(task, judgments)))
        return judged

    def _in_words(self, task: Task, judgments: Mapping[str, HumanRating]) -> str:
        if "" in judgments and judgments[""].cannot:
            return "cannot judge"
        answers = ((question.current, question.choices) for question in self.questions(task))
        return ", ".join(
            "cannot judge" if row.rating is None else text_of(row.rating, choices)
            for row, choices in answers
            if row is not None
        )

    def token(self, task: Task) -> str:
        """Return a fingerprint of her judgments of a passage."""
        lines = "\n".join(f"{item_id}\t{seen_token(row)}" for item_id, row in self.said(task).items())
        return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def shown(self, task: Task) -> str:
        """Return a fingerprint of a passage and all its items."""
        questions = [(q.item_id, q.item and q.item.text, q.choices) for q in self.questions(task)]
        text = json.dumps([self.text_of(task), questions])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _unplanned(self) -> Iterator[tuple[str, str]]:
        begun = {key[:2] for key in self.opinions}
        for query_id, query in self._queries.items():
            for doc_id in query.doc_ids:
                item_ids = self.item_ids(query_id, doc_id)
                if doc_id in query.judged and "" in item_ids:
                    continue
                # Skip passages that other people finished and she did not begin.
                is_free = not query.raters or any(
                    query.raters.get((doc_id, item_id)) in (None, self.who) for item_id in item_ids
                )
                if is_free or (query_id, doc_id) in begun:
                    yield query_id, doc_id


class DeskQuery(NamedTuple):
    """A query for people who judge.

    Attributes:
        doc_ids: passages with distinct texts, those that most runs rank high first.
        item_ids: the items to judge on each passage.
        citing: passage -> the ids of the sentences that cite it; None where `item_ids` holds.
        judged: passages with an official judgment, which need no judgment as a whole.
        raters: (doc_id, item_id) -> the person whose rating counts.
    """

    doc_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    citing: Mapping[str, tuple[str, ...]] | None
    judged: frozenset[str]
    raters: Mapping[tuple[str, str], str]


@memoized
def desk_queries(track: GradedTrack) -> dict[str, DeskQuery]:
    """Return every query for people who judge; computed by the process that reads the track."""
    queries, citing = {}, track.asked.citing
    for query_id, items in track.bank.items.items():
        sheet, ranks = track.sheets[query_id], track.pool[query_id].ranks[:, : track.config.track.depth]
        weights = retrieved_weights(ranks, len(sheet.doc_ids))
        texts = [track.texts.get(doc_id) for doc_id in sheet.doc_ids]
        first: dict[str, str] = {}
        for row_index in np.argsort(-weights, kind="stable").tolist():
            if text := texts[row_index]:
                first.setdefault(text, sheet.doc_ids[row_index])
        cited: dict[str, tuple[str, ...]] = {}
        for item, doc_ids in zip(items, () if citing is None else citing[query_id], strict=False):
            for doc_id in doc_ids:
                cited[doc_id] = (*cited.get(doc_id, ()), item.item_id)
        queries[query_id] = DeskQuery(
            tuple(first.values()),
            items_to_judge(track, query_id),
            None if citing is None else cited,
            frozenset(track.inputs.judged.get(query_id, ())),
            {key: row.who for key, row in human_ratings(track, query_id).items()},
        )
    return queries


def plan_of(folder: TrackFolder, view: View) -> JudgingPlan | None:
    """Return the track's plan, if it applies to this grader: passages in its pool, not citations.

    Raises:
        TrecexamError: it cannot be read.
    """
    plan = None if view.is_cited else read_plan(folder)
    if plan is None or not view.graders:
        return plan
    states = ((view.query(row.query_id), row.doc_id) for tasks in plan.values() for row in tasks)
    is_ours = any(state is not None and state.place(doc_id) is not None for state, doc_id in states)
    return plan if is_ours else None


@lru_cache(maxsize=1 << 17)
def name_of(secret: bytes, query_id: str, doc_id: str) -> str:
    """Return a passage's opaque name for assessors, which reveals its id only with the secret."""
    message = f"{query_id}\0{doc_id}".encode("utf-8", "surrogatepass")
    return hmac.new(secret, message, hashlib.sha256).hexdigest()[:_LETTERS]


def secret_of(folder: TrackFolder) -> bytes:
    """Return the secret for a track's opaque names, created on first use.

    Raises:
        TrecexamError: it cannot be written or read, or is not what was written: with an empty one everybody
            could tell ids from names.
    """
    path = folder.shared_state / "passage-names.key"
    if not path.exists():
        with exclusive_lock(folder.shared_state / "overrides.lock"):
            if not path.exists():
                write_kept(path, secrets.token_hex(_SECRET_BYTES).encode(), mode=0o600)
    secret = read_kept(path)
    if secret is None:
        raise TrecexamError(
            "is not the key that was written: put it back, or delete it (addresses of passages change)",
            path=path,
        )
    return secret


def guidelines(folder: TrackFolder) -> tuple[str, str]:
    """Return the track's guidelines as HTML, and why they cannot be shown; "" for either."""
    name = folder.config.judging.guidelines
    if name is None:
        return "", ""
    try:
        text = (folder.root / name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
        return "", f"{name}, named by `guidelines` in [judging], {why}"
    from markdown_it import MarkdownIt

    html: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return html, ""
