"""Learns again after each judgment, beside the page: how much of the leaderboard is undecided.

A process of its own does, so nobody who rates or reads waits for it. It never encodes: that takes
minutes, and is for `trecexam learn`.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
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
from trecexam.line.loader import opened

#: Seconds for which the process is kept after somebody wanted to know.
INTEREST = 600.0


class Learnt(NamedTuple):
    """From the process: what came of learning.

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


class LearnAgain:
    """What is learned of the track as it is now. Use it as a context manager.

    Args:
        make: the link to who learns, for tests.
    """

    def __init__(self, root: Path, *, make: Callable[[], child.Link] | None = None) -> None:
        self._make = make or (lambda: child.Process(learn_on_demand, root, nice=10))
        self._wake = threading.Condition()
        self._ending = False
        self._version = self._learnt_version = -1
        self._until = 0.0
        self._learnt: Learnt | None = None
        self._link: child.Link | None = None
        self._thread = threading.Thread(target=self._run, name="learn again", daemon=True)

    def __enter__(self) -> LearnAgain:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._wake:
            self._ending = True
            link = self._link
            self._wake.notify_all()
        if link is not None:
            # It reads only: nothing can be lost.
            link.stop()
        self._thread.join(child.LEAVING)

    def want(self, version: int) -> tuple[Learnt | None, bool]:
        """What was learned last, None where nothing was yet; and whether that is of this version.

        It learns again where it is not, and nobody waits for that.

        Args:
            version: of the track's state.
        """
        with self._wake:
            self._version = max(self._version, version)
            self._until = time.monotonic() + INTEREST
            self._wake.notify_all()
            return self._learnt, self._learnt_version >= version

    def wait(self, version: int, seconds: float) -> bool:
        """Waits until it has learned of this version; whether it has."""
        with self._wake:
            return self._wake.wait_for(lambda: self._learnt_version >= version, seconds)

    def _run(self) -> None:
        while True:
            with self._wake:
                due = self._wake.wait_for(
                    lambda: self._ending or self._version > self._learnt_version,
                    None if self._link is None else max(1.0, self._until - time.monotonic()),
                )
                if self._ending:
                    return
                link, version = self._link, self._version
                if due and link is None:
                    link = self._link = self._make()
                    link.start()
            if due and link is not None:
                learnt = self._asked(link)
                with self._wake:
                    self._learnt, self._learnt_version = learnt, version
                    self._wake.notify_all()
            elif link is not None and time.monotonic() > self._until:
                self._let_go(link)

    def _asked(self, link: child.Link) -> Learnt | None:
        link.send(child.Look())
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
    """The process: learns of the track as it is, once for each message."""
    # Who asked is gone at the end.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            if receive(60.0) is not None:
                began = time.monotonic()
                say(_learn(root)._replace(seconds=time.monotonic() - began))


def _learn(root: Path) -> Learnt:
    try:
        # A loader of its own, as the settings may have changed.
        with opened(root) as loader:
            track = loader.load(bank_needed=False)
            if not judged_passages(track):
                return Learnt("no passage is judged yet")
            pool = learn_pool(
                track, encoder=NoEncoder(track_encoder(track)), official=people_judgments(track)[0]
            )
        with threadpool_limits(1):
            known = standing(pool.learned, pool.data.queries, min(K, track.depth))
        return Learnt("", pool.learned.n_judgments, undecided(known))
    except (TrecexamError, ConversionError) as error:
        return Learnt(str(error))
    except Exception as error:
        traceback.print_exc()
        return Learnt(f"this should not happen, please report it: {type(error).__name__}: {error}")
