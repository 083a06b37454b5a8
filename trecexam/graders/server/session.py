"""Asking a server many things: opened, kept busy, stopped at a limit, closed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from trecexam.graders.base import UngradedError, Usage
from trecexam.graders.server.client import Client
from trecexam.graders.server.exchange import Exchange
from trecexam.graders.server.flow import BEAT, flow
from trecexam.graders.server.messages import Form
from trecexam.graders.server.meter import Meter, Pace, reached
from trecexam.graders.server.secret import Secret

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Requests at a time for an engine that batches, and for any other server.
MANY, FEW = 64, 8
#: Seconds that open connections get to close.
_CLOSING = 2.0


@dataclass(frozen=True)
class ServerAccess:
    """Where a server is, and how it is dealt with; nothing of it can change an answer.

    Attributes:
        key_env: the environment variable with the key; None where none is sent.
        concurrency: requests at a time; None for what suits the server.
        timeout: seconds for one answer.
        retries: how often a request that failed is sent again.
        logprobs: ask for the probabilities of tokens.
        headers, query: of each request.
        pace: requests and tokens a minute.
        refused: names of fields that the server refused; they are not sent again.
    """

    base_url: str
    key_env: str | None
    concurrency: int | None
    timeout: float
    retries: int
    logprobs: bool
    headers: Mapping[str, str]
    query: Mapping[str, str]
    pace: Pace
    refused: set[str] = field(default_factory=set, compare=False)


@contextlib.contextmanager
def _session(
    server: ServerAccess, form: Form, meter: Meter, probe: tuple[str, list[str]], secret: Secret
) -> Iterator[tuple[BlockingPortal, Exchange, int]]:
    """A thread with an event loop, and a server to ask in it; at the end all that still runs is cancelled."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        client = portal.call(Client, server.base_url, secret, server.key_env, server.timeout, server.query)
        asks_engine = server.concurrency is None or form.structured == "choice"
        engine = portal.call(client.engine) if asks_engine else ""
        at_once = server.concurrency or (MANY if engine else FEW)
        exchange = Exchange(
            client,
            form,
            meter,
            probe,
            retries=server.retries,
            logprobs=server.logprobs,
            refused=server.refused,
            at_once=at_once,
            pace=server.pace,
            engine=engine,
        )
        try:
            yield portal, exchange, at_once
        finally:
            with contextlib.suppress(TimeoutError):
                portal.start_task_soon(client.close).result(_CLOSING)
            portal.call(portal.stop, True)


def asked(
    server: ServerAccess,
    form: Form,
    meter: Meter,
    probe: tuple[str, list[str]],
    jobs: Iterable[Job],
    most: Callable[[Job], Usage],
    ask: Callable[[Exchange, Secret, Job], Coroutine[Any, Any, Result]],
    *,
    then: str,
    ahead: int = 1,
    gather: float = BEAT,
    waits: Callable[[], bool] = lambda: False,
) -> Generator[list[tuple[Job, Result]], None, None]:
    """Asks a server, as long as no limit could be passed by the next job; each job with what came of it.

    Args:
        probe: a harmless prompt and its permitted answers.
        most: what a job takes at most, by guessed tokens in.
        ask: does a job.
        then: what a higher limit is for, as follows "raise it".
        ahead: jobs under way for each of the `concurrency` places, so that none stands empty.
        gather: see `flow`.
        waits: tells whether no job is to be started before another one ends.

    Raises:
        UngradedError: a limit is in the way of the next job.
        GraderError: the server answers to nothing.
    """
    secret = Secret.from_environment(server.key_env, server.headers)
    rest, waiting, limit = iter(jobs), list[Job](), ""

    def surely(job: Job) -> Usage:
        """What a job will not pass, whatever the language."""
        usage = most(job)
        return usage._replace(tokens_in=2 * usage.tokens_in)

    async def done(exchange: Exchange, job: Job) -> tuple[Job, Result]:
        return job, await ask(exchange, secret, job)

    meter.begin()
    with _session(server, form, meter, probe, secret) as (portal, exchange, at_once):

        def work() -> Callable[[], Coroutine[Any, Any, tuple[Job, Result]]] | None:
            nonlocal limit
            if waits():
                return None
            job = waiting.pop() if waiting else next(rest, None)
            if job is None:
                return None
            limit = meter.passes(surely(job))
            if limit:
                waiting.append(job)
                return None
            meter.start(surely(job))
            return partial(done, exchange, job)

        with contextlib.closing(flow(portal, work, at_once * ahead, gather=gather)) as batches:
            for results in batches:
                for job, _ in results:
                    meter.end(surely(job))
                yield results
    if limit:
        raise UngradedError(reached(limit, then))
