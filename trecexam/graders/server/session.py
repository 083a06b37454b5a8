"""Asking a server many things: opened, kept busy, stopped at a limit, closed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from trecexam.graders.base import UngradedError, Usage
from trecexam.graders.server.client import Client
from trecexam.graders.server.exchange import Exchange
from trecexam.graders.server.flow import BEAT, Background, background, flow
from trecexam.graders.server.messages import Form
from trecexam.graders.server.meter import Meter, reached
from trecexam.graders.server.secret import Secret

Job = TypeVar("Job")
Result = TypeVar("Result")

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
def _session(
    server: ServerAccess, form: Form, meter: Meter, probe: tuple[str, list[str]], secret: Secret
) -> Iterator[tuple[Background, Exchange]]:
    """An event loop with a server to ask in it; at the end all that still runs is cancelled."""

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
) -> Generator[list[tuple[Job, Result]], None, None]:
    """Asks a server, as long as no limit could be passed by the next job; each job with what came of it.

    Args:
        probe: a harmless prompt and its permitted answers.
        most: what a job takes at most, by guessed tokens in.
        ask: does a job.
        then: what a higher limit is for, as follows "raise it".
        ahead: jobs under way for each of the `concurrency` places, so that none stands empty.
        gather: see `flow`.

    Raises:
        UngradedError: a limit stands in the way of the next job.
        GraderError: the server answers to nothing.
    """
    secret = Secret.from_environment(server.key_env)
    rest, waiting, limit = iter(jobs), list[Job](), ""

    def surely(job: Job) -> Usage:
        """What a job will not pass, whatever the language."""
        usage = most(job)
        return usage._replace(tokens_in=2 * usage.tokens_in)

    async def done(exchange: Exchange, job: Job) -> tuple[Job, Result]:
        return job, await ask(exchange, secret, job)

    meter.begin()
    with _session(server, form, meter, probe, secret) as (loop, exchange):

        def work() -> Coroutine[Any, Any, tuple[Job, Result]] | None:
            nonlocal limit
            job = waiting.pop() if waiting else next(rest, None)
            if job is None:
                return None
            limit = meter.passes(surely(job))
            if limit:
                waiting.append(job)
                return None
            meter.start(surely(job))
            return done(exchange, job)

        for results in flow(loop, work, server.concurrency * ahead, gather=gather):
            for job, _ in results:
                meter.end(surely(job))
            yield results
    if limit:
        raise UngradedError(reached(limit, then))
