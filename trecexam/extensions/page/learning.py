"""Learns again in the background after each judgment, and counts undecided pairs of runs.

A separate process does, so nobody who rates or reads waits for it. It never encodes: that takes
minutes, and is for `trecexam learn`.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.settling import Undecided, standing, undecided
from trecexam.extensions.learn.encoding import NoEncoder
from trecexam.extensions.learn.judging_order import judged_passages
from trecexam.extensions.learn.learned_board import K
from trecexam.extensions.learn.learned_pool import learn_pool, people_judgments, track_encoder
from trecexam.extensions.page import child
from trecexam.line.loader import TrackLoader
from trecexam.line.track_graders import open_folder

#: Seconds for which the process is kept after somebody wanted to know.
INTEREST = 600.0


class Learnt(NamedTuple):
    """From the process: the result of learning.

    Attributes:
        failure: why nothing was learned; "" where it was.
        n_judgments: from how many judgments.
        undecided: what of the leaderboard is; None where nothing was learned.
        seconds: that it took, reading what changed of the track included.
    """

    failure: str = ""
    n_judgments: int = 0
    undecided: Undecided | None = None
    seconds: float = 0.0


class LearnOf(NamedTuple):
    """To the process: learn of the current track, as this grader sees it."""

    grader: str


class LearnAgain(child.Beside):
    """Learning on the current track for each grader. Use it as a context manager.

    Args:
        make: the link to who learns, for tests.
    """

    def __init__(self, root: Path, *, make: Callable[[], child.Link] | None = None) -> None:
        self._make = make or (lambda: child.Process(learn_on_demand, root, nice=10))
        self._wake = threading.Condition()
        self._ending = False
        self._until = 0.0
        #: By grader: the version that is wanted, and that which was learned of last, with what came of it.
        self._wanted: dict[str, int] = {}
        self._learnt: defaultdict[str, tuple[int, Learnt | None]] = defaultdict(lambda: (-1, None))
        self._link: child.Link | None = None
        self._thread = threading.Thread(target=self._run, name="learn again", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._ending = True
            link = self._link
            self._wake.notify_all()
        if link is not None:
            # It reads only: nothing can be lost.
            link.stop()
        self._thread.join(child.LEAVING)

    def want(self, grader: str, version: int) -> tuple[Learnt | None, bool]:
        """The last result (None without one), and whether it belongs to this version.

        It learns again where it is not, and nobody waits for that.

        Args:
            version: of the track's state.
        """
        with self._wake:
            self._wanted[grader] = max(self._wanted.get(grader, -1), version)
            self._until = time.monotonic() + INTEREST
            self._wake.notify_all()
            of, learnt = self._learnt[grader]
            return learnt, of >= version

    def wait(self, grader: str, version: int, seconds: float) -> bool:
        """Waits for a result of this version; returns whether there is one."""
        with self._wake:
            return self._wake.wait_for(lambda: self._learnt[grader][0] >= version, seconds)

    def _next(self) -> str | None:
        """The next grader with a requested version."""
        behind = (each for each, version in self._wanted.items() if version > self._learnt[each][0])
        return next(behind, None)

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(
                    lambda: self._ending or self._next() is not None,
                    None if self._link is None else max(1.0, self._until - time.monotonic()),
                )
                if self._ending:
                    return
                link, grader = self._link, self._next()
                version = -1 if grader is None else self._wanted[grader]
                if grader is not None and link is None:
                    link = self._link = self._make()
                    link.start()
            if grader is not None and link is not None:
                learnt = self._asked(link, grader)
                with self._wake:
                    self._learnt[grader] = version, learnt
                    self._wake.notify_all()
            elif link is not None and time.monotonic() > self._until:
                self._let_go(link)

    def _asked(self, link: child.Link, grader: str) -> Learnt | None:
        link.send(LearnOf(grader))
        try:
            learnt: Learnt | None = link.receive()
        except EOFError:
            learnt = Learnt(f"the process that learns {link.ended()}")
            self._let_go(link)
        return learnt

    def _let_go(self, link: child.Link) -> None:
        link.stop()
        with self._wake:
            self._link = None


def learn_on_demand(root: Path, receive: child.Receive, say: child.Say) -> None:
    """The process: learns once per message."""
    # Who asked is gone at the end.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            message = receive(60.0)
            if isinstance(message, LearnOf):
                began = time.monotonic()
                say(_learn(root, message.grader)._replace(seconds=time.monotonic() - began))


def _learn(root: Path, grader: str) -> Learnt:
    try:
        # A separate loader, as the settings may have changed.
        with TrackLoader(open_folder(root, grader)) as loader:
            track = loader.load(bank_needed=False)
            if not judged_passages(track):
                return Learnt("no passage is judged yet")
            pool = learn_pool(
                track, encoder=NoEncoder(track_encoder(track)), official=people_judgments(track)[0]
            )
        with threadpool_limits(1):
            standings = standing(pool.learned, pool.data.queries, min(K, track.depth))
        return Learnt("", pool.learned.n_judgments, undecided(standings))
    except (TrecexamError, ConversionError) as error:
        return Learnt(str(error))
    except Exception as error:
        traceback.print_exc()
        return Learnt(f"this should not happen, please report it: {type(error).__name__}: {error}")
