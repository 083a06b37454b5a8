"""A track's current state, read in the background and swapped as a whole, so that readers never wait."""

from __future__ import annotations

import itertools
import pickle
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from trecexam.errors import TrecexamError
from trecexam.extensions.page.child import Process
from trecexam.extensions.page.gather import query_view
from trecexam.extensions.page.people import with_people
from trecexam.extensions.page.reader import Call, Loaded, Look, LookDone, Returned, Trouble, Work, work
from trecexam.extensions.page.view import QueryView, View
from trecexam.files.stamps import stamp
from trecexam.inputs.track_graders import open_folder

T = TypeVar("T")

#: Seconds that are looked back for how quickly cells are graded.
PACE_SECONDS = 300.0
#: Seconds that a request to the reader waits for it, and that it has to end.
PATIENCE, LEAVING = 60.0, 5.0
#: Who clicks goes before what is read in the background.
NICE = 5
#: Seconds until a reader that ended is started again.
RESTART = 1.0
#: Queries that are kept for who looks at them again.
KEPT = 100


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


class LiveTrack:
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
        self._queries: OrderedDict[tuple[str, str], tuple[object, QueryView | None]] = OrderedDict()
        self._lock = threading.Lock()
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        self._link.start()
        self._listener.start()
        return self

    def __exit__(self, *exc: object) -> None:
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

    def query(self, view: View, query_id: str) -> QueryView | None:
        """Return a query of a view, with people's ratings as their files have them now."""
        current = tuple(map(stamp, view.people_files))
        key, state_of = (view.own, query_id), (view.version, current)
        with self._lock:
            known = self._queries.get(key)
        if known is not None and known[0] == state_of:
            return known[1]
        state = self.call(view.own, query_view, query_id)
        if state is not None and current != view.people:
            # Somebody rated since the track was read.
            state = with_people(open_folder(self.root, view.own), view, state)
        with self._lock:
            self._queries[key] = state_of, state
            self._queries.move_to_end(key)
            while len(self._queries) > KEPT:
                self._queries.popitem(last=False)
        return state

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
                self._restart()
                continue
            if message is None:
                return
            if isinstance(message, Returned):
                answer = self._waiting.get(message.number)
                if answer is not None:
                    answer.put(message)
            elif isinstance(message, LookDone):
                with self._lock:
                    done, self._looking, self._wanted = self._looking, self._wanted, None
                    if self._looking is not None:
                        self._link.send(Look())
                assert done is not None
                done.set()
            else:
                with self._changed:
                    self._take(message)
                    self._changed.notify_all()

    def _restart(self) -> None:
        """Start the reader again after it ended by itself; who waits for it is told at once."""
        reason = "the process that reads the track ended, and is started again"
        self._set_trouble(reason)
        ended = pickle.dumps(TrecexamError(f"{reason}: try again in a moment", path=self.root))
        with self._lock:
            looks, self._looking, self._wanted = (self._looking, self._wanted), None, None
            for number, answer in list(self._waiting.items()):
                answer.put(Returned(number, ended, True))
        for look in looks:
            if look is not None:
                look.set()
        time.sleep(RESTART)
        self._link.start()

    def _take(self, message: Loaded | Trouble | Work) -> None:
        if isinstance(message, Loaded):
            self.version += 1
            shown = [
                replace(view, version=self.version, ask=self.query) for view in pickle.loads(message.views)
            ]
            self.view = replace(shown[0], others={view.own: view for view in shown[1:]})
            self.seconds = message.seconds
        elif isinstance(message, Trouble):
            self.trouble = message.reason
        else:
            self.work = message
            self.pace.note(message.graded)

    def _set_trouble(self, reason: str) -> None:
        with self._changed:
            self.trouble = reason
            self._changed.notify_all()
