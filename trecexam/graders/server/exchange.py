"""A request until it is answered: again after a pause, in another form, or never; and whose fault it is.

A server may be down or busy (wait, then give up for now), take nothing from us (`GraderError`), or have no
answer to this request.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import reduce
from itertools import chain
from typing import Any, TypeVar

from anyio.from_thread import start_blocking_portal

from trecexam.errors import GraderError
from trecexam.graders.base import Answer, UngradedError
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.replies import FirstReplies, Unwritten, WrittenText
from trecexam.graders.server.client import SGLANG, Client, RefusedError
from trecexam.graders.server.model import PassingError, Request, Server, tokens, written

Thing = TypeVar("Thing")
Result = TypeVar("Result")
#: Of a call: each of its things with its result, or with the failure of a server that may answer later.
Results = list[tuple[Thing, Result | PassingError]]

#: Tells a server that takes nothing from one that does not take a certain prompt.
PROBE = Request("What is the capital of France?", ("Paris",))
#: Seconds of the first pause and of the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: A server that is busy gets so many seconds, whatever `retries` says, and may ask for a pause so long.
PATIENCE = 600.0
#: Requests at a time for an engine that batches, and for any other server.
MANY, FEW = 64, 8
#: Seconds after which the caller hears something, be it that nothing has come.
BEAT = 0.25
_CLOSING = 2.0
_MINUTE = 60.0
_TOO_LONG = re.compile(
    r"context.{0,10}(length|window|size)|maximum.{0,30}(length|tokens)|too (long|large)", re.I
)
_FILTERED = re.compile(r"content[ _-]?(filter|policy|management)", re.I)
_CONSTRAINT = re.compile(r"response_format|json_schema|structured_outputs|regex")


class Exchange:
    """Requests to a server with this `engine`, see `Client`."""

    def __init__(self, client: Client, server: Server, engine: str) -> None:
        self._client, self._server, self._engine = client, server, engine
        self.at_once = server.settings.concurrency or (MANY if engine else FEW)
        self._places = asyncio.Semaphore(self.at_once)
        self._closed_until = self._free_at = 0.0
        self._last_success: float | None = None
        self._probing = asyncio.Lock()

    async def ask(self, request: Request) -> WrittenText | Unwritten | PassingError:
        """Ask a prompt. The reason of an unwritten answer, or a filter's, follows "the server ...".

        A failure that may pass is returned, as other requests go on.

        Raises:
            GraderError: the server answers to nothing.
        """
        started = time.monotonic()
        try:
            return await self._repeated(request, started)
        except PassingError as error:
            await self._check_well(started, error.reason)
            return error
        except RefusedError as error:
            message = f"{error.code} {error.reason}"
            if _FILTERED.search(message):
                return WrittenText(error.reason, refused=True)
            await self._check_well(None, error.reason)
            hint = "; `max_characters` in [grader] cuts passages" if _TOO_LONG.search(message) else ""
            return Unwritten(f"{error.reason}{hint}")

    async def _check_well(self, since: float | None, reason: str) -> None:
        """Raise a GraderError unless the server answered something (since then), or answers the probe now."""
        async with self._probing:
            if self._last_success is not None and (since is None or self._last_success > since):
                return
            try:
                await self._once(PROBE)
            except (PassingError, RefusedError):
                # The first reason is the better one: it is of what was wanted.
                raise GraderError(f"{self._client.base_url} {reason}") from None

    async def _repeated(self, request: Request, begun: float) -> WrittenText:
        tries = 0
        while True:
            try:
                return await self._adapting(request)
            except PassingError as error:
                tries += 1
                if self._is_enough(error, tries, time.monotonic() - begun):
                    raise
                # Longer each time, and at random: requests that failed together must not come back together.
                backoff = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries - 1, 16)))
                # "At once", said again and again, must not become a storm.
                wished = error.wait or 0.0
                await asyncio.sleep(wished if wished >= FIRST_PAUSE else max(wished, backoff))

    def _is_enough(self, error: PassingError, tries: int, seconds: float) -> bool:
        if error.wait is not None and error.wait > PATIENCE:
            return True
        if error.busy:
            return seconds > PATIENCE
        if error.unreachable and self._last_success is None:
            # Nothing listens there: that is soon said, and tried again by who asked.
            return tries > 1
        return tries > self._server.settings.retries

    async def _adapting(self, request: Request) -> WrittenText:
        """Try once; a field that this server does not know is left out or named otherwise, for good."""
        server = self._server
        while True:
            logprobs, limit = server.logprobs, server.limit
            try:
                return await self._once(request)
            except RefusedError as error:
                reason = error.reason.lower()
                if logprobs and "logprobs" in reason:
                    server.logprobs = False
                    continue
                if limit == "max_tokens" and "max_completion_tokens" in reason:
                    server.limit = "max_completion_tokens"
                    continue
                if "temperature" in reason and server.settings.temperature != 1:
                    remedy = "set `temperature = 1` in [grader]"
                elif server.structured and _CONSTRAINT.search(reason):
                    remedy = "take `structured` out of [grader]"
                elif server.schema and _CONSTRAINT.search(reason):
                    remedy = 'set `structured = "none"` in [grader]'
                else:
                    raise
                raise GraderError(f"{self._client.base_url} {error.reason}: {remedy}") from None

    async def _once(self, request: Request) -> WrittenText:
        while True:
            async with self._places:
                closed = self._closed_until - time.monotonic()
                if closed <= 0:
                    return await self._posted(request)
            await asyncio.sleep(closed)

    def _seconds(self, tokens: int) -> float:
        """Return the seconds that a request of so many tokens takes up where so much a minute is taken."""
        settings = self._server.settings
        of_request = _MINUTE / settings.requests_per_minute if settings.requests_per_minute else 0.0
        of_tokens = _MINUTE * tokens / settings.tokens_per_minute if settings.tokens_per_minute else 0.0
        return max(of_request, of_tokens)

    async def _posted(self, request: Request) -> WrittenText:
        server, meter, text = self._server, self._server.meter, request.text
        chat = server.settings.api == "chat"
        expected = guessed(text) + meter.expected_out(server.new_tokens, short=bool(request.answers))
        now = time.monotonic()
        start = max(now, self._free_at)
        self._free_at = start + self._seconds(expected)
        await asyncio.sleep(start - now)
        try:
            body = server.body(request, by_regex=self._engine == SGLANG)
            response = await self._client.post("chat/completions" if chat else "completions", body)
        except PassingError as error:
            if error.wait is not None and error.wait <= PATIENCE:
                # It is told to one, and meant for all.
                self._closed_until = max(self._closed_until, time.monotonic() + error.wait)
            raise
        used = tokens(response)
        if used != (None, None):
            self._free_at += self._seconds(sum(n or 0 for n in used)) - self._seconds(expected)
        try:
            answer = written(response, chat=chat)
        except PassingError:
            if used != (None, None):
                # Of no use, and paid for.
                meter.count(text, "", *used)
            raise
        meter.count(text, answer.text, *used)
        self._last_success = time.monotonic()
        # A server that says back what it was sent must not get the key into a file or the store.
        return answer._replace(text=self._client.secret.hidden(answer.text))


def asked(
    server: Server,
    calls: Iterable[tuple[Thing, ...]],
    most: Callable[[tuple[Thing, ...]], Usage],
    ask: Callable[[Exchange, tuple[Thing, ...]], Coroutine[Any, Any, Results[Thing, Result]]],
    what: str,
    *,
    ahead: int = 1,
    gather: float = BEAT,
    first: FirstReplies | None = None,
) -> Generator[list[tuple[Thing, Result]], None, None]:
    """Make calls, as long as no limit could be passed by the next one; yield their things with results.

    They come in lists, in any order; every `BEAT` seconds there is a list, if empty. Calls that still run
    when the caller stops are cancelled.

    Args:
        most: what a call takes at most, by guessed tokens in.
        ask: makes a call.
        what: the things of a call, in messages.
        ahead: calls under way for each of the `concurrency` places, so that none stands empty.
        gather: seconds for which results may wait for others. 0: the caller has each result before anything
            else is started.
        first: the replies that are waited for before anything else is sent; None for none.

    Raises:
        UngradedError: a limit is in the way of the next call, or things have no answer for now.
        GraderError: the server answers to nothing.
    """
    rest, limit = iter(calls), ""
    running: dict[Future[Results[Thing, Result]], Usage] = {}
    ready: Results[Thing, Result] = []
    unanswered: list[str] = []
    first = first or FirstReplies(read=1)
    settings = server.settings
    # A thread with an event loop; at the end all that still runs in it is cancelled.
    with start_blocking_portal() as portal:
        client = portal.call(Client, settings)
        try:
            asks_engine = settings.concurrency is None or server.structured == "choice"
            exchange = Exchange(client, server, portal.call(client.engine) if asks_engine else "")
            last_yield = time.monotonic()
            while True:
                while len(running) < ahead * exchange.at_once and not first.are_due:
                    call = next(rest, None)
                    if call is None:
                        break
                    # A call on its way counts as much as it may become; tokens in are guessed.
                    usage = most(call)
                    usage = usage._replace(tokens_in=2 * usage.tokens_in)
                    limit = server.meter.passes(reduce(Usage.plus, running.values(), usage))
                    if limit:
                        rest = chain([call], rest)
                        break
                    first.sent += len(call)
                    running[portal.start_task_soon(ask, exchange, call)] = usage
                if not running:
                    break
                failures: list[BaseException] = []
                for future in wait(running, timeout=BEAT, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    error = future.exception()
                    if error is None:
                        ready += future.result()
                    else:
                        failures.append(error)
                if failures or not running or time.monotonic() >= last_yield + gather:
                    unanswered += (each.reason for _, each in ready if isinstance(each, PassingError))
                    yield [(thing, each) for thing, each in ready if not isinstance(each, PassingError)]
                    # What the caller does with these may let more be started.
                    first.add(result.status if isinstance(result, Answer) else "" for _, result in ready)
                    ready, last_yield = [], time.monotonic()
                if failures:
                    raise failures[0]
        finally:
            for future in running:
                future.cancel()
            with contextlib.suppress(TimeoutError):
                portal.start_task_soon(client.close).result(_CLOSING)
            portal.call(portal.stop, True)
    if limit:
        raise UngradedError(limit)
    if unanswered:
        raise UngradedError(
            f"{settings.base_url} gave no answer to {len(unanswered):,} {what}, which are sent again: "
            f"it {unanswered[-1]}"
        )
