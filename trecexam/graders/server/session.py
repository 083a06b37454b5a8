"""Asking a server many things: opened, kept busy, stopped at a limit, closed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from trecexam.graders.base import Usage
from trecexam.graders.server.client import Client
from trecexam.graders.server.exchange import Exchange
from trecexam.graders.server.flow import Background, background
from trecexam.graders.server.messages import Form
from trecexam.graders.server.meter import Meter
from trecexam.graders.server.secret import Secret

Job = TypeVar("Job")

#: Requests that wait for one of the `concurrency` places, so that none stands empty.
AHEAD = 2
#: Seconds that open connections get to close.
_CLOSING = 2.0


@dataclass(frozen=True)
class ServerAccess:
    """Where a server is, and how it is dealt with; nothing of it can change an answer.

    Attributes:
        key_env: the environment variable with the key; None where none is sent.
        concurrency: requests at a time.
        timeout: seconds for one answer.
        retries: how often a request that failed is sent again.
        logprobs: ask for the probabilities of tokens.
    """

    base_url: str
    key_env: str | None
    concurrency: int
    timeout: float
    retries: int
    logprobs: bool


@contextlib.contextmanager
def session(
    server: ServerAccess, form: Form, meter: Meter, probe: tuple[str, list[str]], secret: Secret
) -> Iterator[tuple[Background, Exchange]]:
    """An event loop with a server to ask in it; at the end all that still runs is cancelled.

    Args:
        probe: a harmless prompt and its permitted answers.
    """

    async def opened() -> tuple[Client, Exchange]:
        client = Client(server.base_url, secret, server.key_env, server.timeout)
        return client, Exchange(
            client,
            form,
            meter,
            probe,
            retries=server.retries,
            logprobs=server.logprobs,
            at_once=server.concurrency,
        )

    with background("trecexam-server") as loop:
        client, exchange = loop.start(opened()).result()
        try:
            yield loop, exchange
        finally:
            loop.end()
            with contextlib.suppress(TimeoutError):
                loop.start(client.close()).result(_CLOSING)


class Queue(Generic[Job]):
    """Jobs, as long as no limit could be passed by asking about the next.

    Attributes:
        limit: the one that stands in the way of the next job, "" where none does.
    """

    def __init__(self, jobs: Iterable[Job], meter: Meter, most: Callable[[Job], Usage]) -> None:
        self._rest = iter(jobs)
        self._meter = meter
        self._most = most
        self._ahead: Job | None = None
        self.limit = ""
        meter.begin()

    def next(self) -> Job | None:
        """The next job; None where there is none, or while a limit stands in the way."""
        job = self._ahead or next(self._rest, None)
        if job is None:
            return None
        most = self._most(job)
        self.limit = self._meter.passes(most)
        self._ahead = job if self.limit else None
        if self.limit:
            return None
        self._meter.start(most)
        return job

    def done(self, job: Job) -> None:
        """Takes note that a job is no longer on its way."""
        self._meter.end(self._most(job))
