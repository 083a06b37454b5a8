"""A track's current state, read in the background and swapped as a whole, so that readers never wait."""

from __future__ import annotations

import itertools
import pickle
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from trecexam.errors import TrecexamError
from trecexam.extensions.page.child import Beside, Look, Process
from trecexam.extensions.page.reader import (
    Call,
    Loaded,
    LookDone,
    NewPart,
    Returned,
    Trouble,
    Work,
    work,
)
from trecexam.extensions.page.view import Part, QueryView, View

T = TypeVar("T")

#: Seconds that are looked back for how quickly cells are graded.
PACE_SECONDS = 300.0
#: Seconds that a request to the reader waits for it, and that it has to end.
PATIENCE, LEAVING = 60.0, 5.0
#: Who clicks goes before what is read in the background.
NICE = 5


class Pace:
    """The speed of grading over the last minutes."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=1_000)

    def note(self, graded: int, now: float | None = None) -> None:
        """Records the number of graded cells; a lower number restarts the count."""
        now = time.monotonic() if now is None else now
        if self._seen and graded < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, graded))
        while self._seen[0][0] < now - PACE_SECONDS:
            self._seen.popleft()

    def cells_a_second(self, now: float | None = None) -> float | None:
        """Graded cells per second over the last minutes; None if nothing was graded."""
        now = time.monotonic() if now is None else now
        recent = [(at, graded) for at, graded in self._seen if at >= now - PACE_SECONDS]
        if len(recent) < 2 or recent[-1][1] == recent[0][1]:
            return None
        return (recent[-1][1] - recent[0][1]) / (now - recent[0][0])


class _Patch(NamedTuple):
    """A changed query of a grader, shown until the track is read again."""

    grader: str
    query_id: str
    change: Callable[[View, QueryView], QueryView]
    done: threading.Event


class LiveTrack(Beside):
    """The state of a track, kept current in the background. Use it as a context manager.

    Attributes:
        view: the state that was read last; None while the first one is being read. Never changed, but
            replaced: take it once for a page.
        version: grows with every new state.
        trouble: why the track cannot be read now, though the last state holds; "" where all is well.
        work: how far grading is, None where it is not known yet; `pace` how quickly it goes.

    Args:
        link: the reader; None for a new process.
    """

    def __init__(self, root: Path, *, link: Process | None = None) -> None:
        self.root = root
        self.view: View | None = None
        self.version = 0
        self.trouble = ""
        self.work: Work | None = None
        self.pace = Pace()
        self.seconds = 0.0
        self._link = link or Process(work, root, nice=NICE)
        self._listener = threading.Thread(target=self._listen, name="live track", daemon=True)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[Returned]] = {}
        self._looking: threading.Event | None = None
        self._wanted: threading.Event | None = None
        self._parts: dict[str, dict[str, Part]] = defaultdict(dict)
        self._patches: list[_Patch] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition()

    def start(self) -> None:
        self._link.start()
        self._listener.start()

    def stop(self) -> None:
        # It reads only: nothing can be lost.
        self._link.stop()
        self._listener.join(LEAVING)

    def reload(self, wait: float = PATIENCE) -> bool:
        """Reads the track again after a write; returns whether it finished in time.

        Args:
            wait: seconds; 0 asks only.
        """
        done = self._look()
        return done.wait(wait) if wait else False

    def patch(self, grader: str, query_id: str, change: Callable[[View, QueryView], QueryView]) -> None:
        """Shows a change at once, and reads the track again.

        Args:
            grader: whose ratings were written.
            change: gives the query's state now, all that was written of it included; called again on
                a state that is read meanwhile.
        """
        done = self._look()
        with self._changed:
            self._patches = [
                pending
                for pending in self._patches
                if pending[:2] != (grader, query_id) and not pending.done.is_set()
            ]
            self._patches.append(_Patch(grader, query_id, change, done))
            if self.view is not None:
                # The others are in it: fifty people who rate would make each wait for all that is pending.
                self._show(self.view, self._patches[-1:])
                self._changed.notify_all()

    def _look(self) -> threading.Event:
        """Requests another read of the track; concurrent requests share one.

        With a look for each of a thousand ratings, the pipes to and from the reader would fill, and both
        sides wait for ever.
        """
        with self._lock:
            if self._looking is None:
                self._looking = threading.Event()
                self._link.send(Look())
                return self._looking
            self._wanted = self._wanted or threading.Event()
            return self._wanted

    def call(self, grader: str, function: Callable[..., T], *args: Any) -> T:
        """Calls `function(track, *args)` in the reader, with this grader's view of the track.

        It is done after what the reader has in hand, so it may take as long as reading the track. What goes
        there and comes back is pickled; the function must be importable, and must not change the track.

        Raises:
            TrecexamError: the track is not read yet, or the reader does not answer.
            Exception: what the function raised.
        """
        number, answer = next(self._numbers), queue.SimpleQueue[Returned]()
        self._waiting[number] = answer
        try:
            with self._lock:
                self._link.send(Call(number, function, args, grader))
            returned = answer.get(timeout=PATIENCE)
        except queue.Empty:
            raise TrecexamError("the track is being read; try again in a minute", path=self.root) from None
        finally:
            del self._waiting[number]
        value = pickle.loads(returned.value)
        if returned.failed:
            raise value
        result: T = value
        return result

    def wait_for(self, ready: Callable[[LiveTrack], bool], seconds: float = PATIENCE) -> bool:
        """Waits until a condition holds; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(lambda: ready(self), seconds)

    def _listen(self) -> None:
        while True:
            try:
                message = self._link.receive()
            except EOFError:
                self._set_trouble("the process that reads the track ended: start `trecexam serve` again")
                return
            if message is None:
                return
            if isinstance(message, Returned):
                answer = self._waiting.get(message.number)
                if answer is not None:
                    answer.put(message)
            elif isinstance(message, NewPart):
                self._parts[message.grader][message.query_id] = message.part
            elif isinstance(message, LookDone):
                with self._lock:
                    done, self._looking, self._wanted = self._looking, self._wanted, None
                    if self._looking is not None:
                        self._link.send(Look())
                assert done is not None
                self._end_patches(done)
                done.set()
            else:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()

    def _take(self, message: Loaded | Trouble | Work) -> None:
        if isinstance(message, Loaded):
            shell: View = pickle.loads(message.view)
            other_views = {name: self._with_parts(other) for name, other in shell.others.items()}
            self._show(replace(self._with_parts(shell), others=other_views), self._patches)
            self.seconds = message.seconds
        elif isinstance(message, Trouble):
            self.trouble = message.reason
        else:
            self.work = message
            self.pace.note(message.graded)

    def _end_patches(self, done: threading.Event) -> None:
        """Removes patches older than this read.

        What was written and taken back between two looks is no change to the reader, which says nothing.
        """
        with self._changed:
            ended = [patch for patch in self._patches if patch.done is done]
            self._patches = [patch for patch in self._patches if patch.done is not done]
            if self.view is not None and (old := [patch for patch in ended if self._is_old(patch)]):
                self._show(self.view, old)
                self._changed.notify_all()

    def _is_old(self, patch: _Patch) -> bool:
        assert self.view is not None
        view = self.view.of(patch.grader)
        state = None if view is None else view.query(patch.query_id)
        return view is not None and state is not None and patch.change(view, state).human != state.human

    def _with_parts(self, shell: View) -> View:
        parts = {query_id: self._parts[shell.own][query_id] for query_id in shell.heads}
        # New parts come into this one, and a view never changes.
        self._parts[shell.own] = dict(parts)
        return replace(shell, parts=parts)

    def _show(self, view: View, patches: Sequence[_Patch]) -> None:
        """Makes this the current state, with later patches applied."""
        views = {view.own: view, **view.others}
        for patch in patches:
            of_grader = views.get(patch.grader)
            state = None if of_grader is None or patch.done.is_set() else of_grader.query(patch.query_id)
            if of_grader is not None and state is not None:
                new = patch.change(of_grader, state)
                part = of_grader.parts[patch.query_id]._replace(state=pickle.dumps(new, protocol=5))
                head = replace(of_grader.heads[patch.query_id], human=len(new.human))
                views[patch.grader] = replace(
                    of_grader,
                    parts={**of_grader.parts, patch.query_id: part},
                    heads={**of_grader.heads, patch.query_id: head},
                )
        self.version += 1
        views = {name: replace(each, version=self.version, _opened={}) for name, each in views.items()}
        first = views.pop(view.own)
        self.view = replace(first, others=views)

    def _set_trouble(self, reason: str) -> None:
        with self._changed:
            self.trouble = reason
            self._changed.notify_all()
