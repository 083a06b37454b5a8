"""Searches what to judge next in the background, which takes from a second to many minutes.

A process looks at one query after another and says what it finds, so that there is something to judge as soon
as the first is done. What was found holds until the query is looked at again, marked as of an earlier state.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.campaign.judge_next.cited import unlabelled_citations
from trecexam.extensions.campaign.judge_next.search import Search, SuggestedJudgment
from trecexam.extensions.page import child
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder

#: Judgments of a query that are kept: who judged these has changed what the others are worth.
KEPT = 50
#: Seconds for which it continues looking after somebody wanted the list.
INTEREST = 600.0
#: A new look begins so many times later as the last one took, and after so many seconds at the least.
REST, LEAST = 4.0, 2.0


#: Lists that are kept at a time; each is made current only while somebody works on it.
LISTS = 4


class Wish(NamedTuple):
    """A requested list.

    Attributes:
        measure: what the ranking is by; "" for the track's first on labels of passages.
        grader: whose ratings people rate; "" for the first.
    """

    measure: str = ""
    grader: str = ""


#: The list where nothing else is said.
DEFAULT = Wish()


class Key(NamedTuple):
    """A citation, or with item_id "" a whole passage."""

    query_id: str
    doc_id: str
    item_id: str


class QueuedJudgment(NamedTuple):
    """A judgment that a person should make.

    Attributes:
        order: those with the least are made first.
        runs: how many have it among their first ranks, or cite it.
    """

    key: Key
    order: tuple[float, ...]
    runs: int


@dataclass(frozen=True)
class JudgmentQueue:
    """The suggested judgments.

    Attributes:
        level, measure: as in `NextJudgments`; the level is "" while nothing was looked at.
        by_query: query_id -> its judgments, best first, `KEPT` at the most.
        as_of: query_id -> the version of the state that they are of.
        queries: how many there are to look at.
        looked, total: progress of the current search; both 0 without one.
        failure: why nothing can be found; "" where all is well.
    """

    level: Literal["passage", "citation", ""] = ""
    measure: str = ""
    by_query: Mapping[str, tuple[QueuedJudgment, ...]] = field(default_factory=dict)
    as_of: Mapping[str, int] = field(default_factory=dict)
    queries: int = 0
    looked: int = 0
    total: int = 0
    failure: str = ""

    @cached_property
    def best(self) -> tuple[QueuedJudgment, ...]:
        """All judgments, best first."""
        rows = (judgment for group in self.by_query.values() for judgment in group)
        return tuple(sorted(rows, key=lambda judgment: (judgment.order, judgment.key)))

    def stale(self, version: int) -> int:
        """Queries whose judgments come from an earlier state."""
        return sum(judged_version < version for judged_version in self.as_of.values())


class LookRequest(NamedTuple):
    """To the process: the requested list, and the searched queries, oldest first."""

    wish: Wish
    known: tuple[str, ...]


class Began(NamedTuple):
    """From the process: the track is read; the kind of list, and its number of queries."""

    level: Literal["passage", "citation"]
    measure: str
    query_ids: tuple[str, ...]


class QueryLooked(NamedTuple):
    """From the process: a query was searched."""

    query_id: str
    rows: tuple[QueuedJudgment, ...]


class LookFailed(NamedTuple):
    """From the process: the reason for a failure."""

    reason: str


class LookOver(NamedTuple):
    """From the process: all queries were searched."""


class JudgeNext(child.Beside):
    """All lists of what to judge next. Use it as a context manager.

    Args:
        make: the link to who looks, for tests.
        rest: in place of `REST`.
    """

    def __init__(
        self, root: Path, *, make: Callable[[], child.Process] | None = None, rest: float = REST
    ) -> None:
        self._new = partial(JudgeList, root, make=make, rest=rest)
        self._lists: OrderedDict[Wish, JudgeList] = OrderedDict()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Stops all lists."""
        with self._lock:
            while self._lists:
                self._lists.popitem()[1].stop()

    def of(self, wish: Wish) -> JudgeList:
        """The list of that kind."""
        with self._lock:
            if wish not in self._lists:
                self._lists[wish] = self._new(wish)
            self._lists.move_to_end(wish)
            while len(self._lists) > LISTS:
                self._lists.popitem(last=False)[1].stop()
            return self._lists[wish]


class JudgeList:
    """A list that is updated in the background while it is requested."""

    def __init__(
        self,
        root: Path,
        wish: Wish = DEFAULT,
        *,
        make: Callable[[], child.Process] | None = None,
        rest: float = REST,
    ) -> None:
        self._wish = wish
        self._make = make or (lambda: child.Process(look, root, nice=10))
        self._rest = rest
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._link: child.Process | None = None
        self._ending = False
        self._version = 0
        self._until = 0.0
        self._failed_at = -1
        self._queue = JudgmentQueue()
        self._thread = threading.Thread(target=self._run, name="judge next", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        with self._wake:
            self._ending = True
            link = self._link
            self._wake.notify_all()
        if link is not None:
            # It reads only: nothing can be lost.
            link.stop()
        self._thread.join(child.LEAVING)

    def want(self, version: int) -> JudgmentQueue:
        """The current list; starts an update in the background.

        Args:
            version: of the track's state.
        """
        with self._wake:
            self._version = max(self._version, version)
            self._until = time.monotonic() + INTEREST
            self._wake.notify_all()
            return self._queue

    def wait(self, seconds: float) -> JudgmentQueue:
        """Waits until the list has an entry or is known to be empty, and returns it."""
        with self._wake:
            self._wake.wait_for(self._is_something, seconds)
            return self._queue

    def _is_something(self) -> bool:
        queue = self._queue
        return bool(queue.failure or any(queue.by_query.values()) or (queue.level and not queue.total))

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._ending, pause)
                self._wake.wait_for(lambda: self._ending or self._is_due())
                if self._ending:
                    return
                version, as_of = self._version, self._queue.as_of
                known_ids = tuple(sorted(as_of, key=lambda query_id: as_of[query_id]))
                link = self._link = self._make()
                link.start()
            began = time.monotonic()
            try:
                link.send(LookRequest(self._wish, known_ids))
                self._listen(link, version)
            except Exception as error:
                traceback.print_exc()
                self._fail(
                    f"this should not happen, please report it: {type(error).__name__}: {error}", version
                )
            finally:
                link.stop()
                with self._wake:
                    self._link = None
                    self._queue = replace(self._queue, looked=0, total=0)
                    self._wake.notify_all()
            pause = max(LEAST, self._rest * (time.monotonic() - began)) if self._rest else 0.01

    def _is_due(self) -> bool:
        queue = self._queue
        if time.monotonic() > self._until or self._failed_at == self._version:
            return False
        return len(queue.as_of) < max(1, queue.queries) or queue.stale(self._version) > 0

    def _listen(self, link: child.Process, version: int) -> None:
        known_ids: frozenset[str] = frozenset()
        while True:
            try:
                message = link.receive()
            except EOFError:
                self._fail(f"the process that looks for judgments {link.ended()}", version)
                return
            if message is None or isinstance(message, LookOver):
                return
            if isinstance(message, LookFailed):
                self._fail(message.reason, version)
                return
            with self._wake:
                queue = self._queue
                if isinstance(message, Began):
                    known_ids = frozenset(message.query_ids)
                    same = (message.level, message.measure) == (queue.level, queue.measure)
                    self._queue = JudgmentQueue(
                        *message[:2],
                        {q: rows for q, rows in queue.by_query.items() if same and q in known_ids},
                        {q: of for q, of in queue.as_of.items() if same and q in known_ids},
                        len(known_ids),
                        0,
                        len(known_ids),
                    )
                else:
                    self._queue = replace(
                        queue,
                        by_query={**queue.by_query, message.query_id: message.rows},
                        as_of={**queue.as_of, message.query_id: version},
                        looked=queue.looked + 1,
                    )
                self._wake.notify_all()
                if time.monotonic() > self._until:
                    return

    def _fail(self, reason: str, version: int) -> None:
        with self._wake:
            self._failed_at = version
            self._queue = JudgmentQueue(failure=reason)
            self._wake.notify_all()


def look(root: Path, receive: child.Receive, say: child.Say) -> None:
    """The process: searches all queries once, the named ones last."""
    request = None
    while request is None:
        request = receive(60.0)
    assert isinstance(request, LookRequest)
    try:
        with OpenTrack(open_folder(root, request.wish.grader or None)) as loaders:
            track = loaders[request.wish.grader or next(iter(loaders))].load()
            looks = _at_rankings if track.asked.citing is None else _at_citations
            for row in looks(track, request):
                say(row)
        say(LookOver())
    except (TrecexamError, ConversionError) as error:
        say(LookFailed(str(error)))
    except (BrokenPipeError, ConnectionResetError):
        # Nobody wants to know any more.
        pass
    except Exception as error:
        traceback.print_exc()
        say(LookFailed(f"this should not happen, please report it: {type(error).__name__}: {error}"))


def _ordered(query_ids: Collection[str], known_ids: Collection[str]) -> list[str]:
    """Queries that were never searched, then the others as given."""
    current_ids = frozenset(query_ids)
    return [q for q in query_ids if q not in known_ids] + [q for q in known_ids if q in current_ids]


def _at_rankings(track: GradedTrack, request: LookRequest) -> Iterator[Began | QueryLooked]:
    """The passages to judge, query by query, as `judge-next` lists them."""
    search = Search(track, request.wish.measure or None)
    queries = search.chosen()
    yield Began("passage", search.measure, tuple(queries))
    for query_id in _ordered(queries, request.known):
        yield _looked(query_id, sorted(search.of_query(query_id), key=lambda row: row.order))


def _at_citations(track: GradedTrack, request: LookRequest) -> Iterator[Began | QueryLooked]:
    """The sentences to label with what they cite, as `judge-next` lists them."""
    by_query: dict[str, list[SuggestedJudgment]] = {query_id: [] for query_id in track.bank.query_ids}
    yield Began("citation", "", tuple(by_query))
    for row in unlabelled_citations(track)[0]:
        by_query[row.query_id].append(row)
    for query_id, rows in by_query.items():
        yield _looked(query_id, rows)


def _looked(query_id: str, rows: Sequence[SuggestedJudgment]) -> QueryLooked:
    return QueryLooked(
        query_id,
        tuple(
            QueuedJudgment(
                Key(query_id, row.doc_id, row.item.item_id if row.item else ""),
                row.order,
                row.runs,
            )
            for row in rows[:KEPT]
        ),
    )
