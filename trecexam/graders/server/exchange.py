"""A request until it is answered: again after a pause, in another form, or never; and whose fault it is.

What is told apart: a server that is down or busy (wait, then give up for now), one that takes nothing from us
(`GraderError`), and one that is well but has no answer to this request.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.errors import GraderError
from trecexam.graders.server.client import SGLANG, Client, PassingError, RefusedError
from trecexam.graders.server.messages import Form, Reply, reply, sglang_body, tokens
from trecexam.graders.server.meter import Meter, Pace, guessed

if TYPE_CHECKING:
    from tenacity import RetryCallState

#: Seconds of the first pause and of the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: A server that is busy gets so many seconds, whatever `retries` says, and may ask for a pause so long.
PATIENCE = 600.0
_TOO_LONG = re.compile(
    r"context.{0,10}(length|window|size)|maximum.{0,30}(length|tokens)|too (long|large)", re.I
)
_FILTERED = re.compile(r"content[ _-]?(filter|policy|management)", re.I)


class Unanswered(NamedTuple):
    """A request without an answer. `passing`: it may get one later. `filtered`: the server will not say."""

    reason: str
    passing: bool = False
    filtered: bool = False


class Exchange:
    """Facts about a server while it runs.

    Args:
        probe: a harmless prompt and its permitted answers; tells a server that takes nothing from one that
            does not take a certain text.
        refused: names of fields that the server refused; more are added.
        engine: as `Client.engine` names it.
    """

    def __init__(
        self,
        client: Client,
        form: Form,
        meter: Meter,
        probe: tuple[str, list[str]],
        *,
        retries: int,
        logprobs: bool,
        refused: set[str],
        at_once: int,
        pace: Pace,
        engine: str,
    ) -> None:
        import asyncio

        self._meter = meter
        self._client = client
        self._form = form
        self._probe = probe
        self._retries = retries
        self._logprobs = logprobs
        self._refused = refused
        self._engine = engine
        self._places = asyncio.Semaphore(at_once)
        self._closed_until = 0.0
        self._pace = pace
        self._free_at = 0.0
        self._last_success: float | None = None
        self._probing = asyncio.Lock()

    async def ask(self, text: str, answers: list[str], form: Form | None = None) -> Reply | Unanswered:
        """The answer to a prompt.

        Args:
            form: of this request; None for as all are.

        Raises:
            GraderError: the server answers to nothing.
        """
        started = time.monotonic()
        try:
            return await self._repeated(form or self._form, text, answers)
        except PassingError as error:
            await self._well(started, error.reason)
            return Unanswered(error.reason, passing=True)
        except RefusedError as error:
            message = f"{error.code} {error.reason}"
            if _FILTERED.search(message):
                return Unanswered(error.reason, filtered=True)
            await self._well(None, error.reason)
            hint = "; `max_characters` in [grader] cuts passages" if _TOO_LONG.search(message) else ""
            return Unanswered(f"{error.reason}{hint}")

    async def _well(self, since: float | None, reason: str) -> None:
        """Returns where the server is well: it answered something (since then), or answers the probe now.

        Raises:
            GraderError: it does not.
        """
        async with self._probing:
            if self._last_success is not None and (since is None or self._last_success > since):
                return
            try:
                await self._once(self._form, *self._probe)
            except (PassingError, RefusedError):
                # The first reason is the better one: it is of what was wanted.
                raise GraderError(f"{self._client.base_url} {reason}") from None

    async def _repeated(self, form: Form, text: str, answers: list[str]) -> Reply:
        from tenacity import AsyncRetrying, retry_if_exception_type

        reply: Reply = await AsyncRetrying(
            retry=retry_if_exception_type(PassingError), wait=self._pause(), stop=self._enough, reraise=True
        )(self._adapting, form, text, answers)
        return reply

    def _pause(self) -> Callable[[RetryCallState], float]:
        """Longer each time, and at random: requests that failed together must not come back together."""
        from tenacity import wait_random_exponential

        backoff = wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)

        def pause(state: RetryCallState) -> float:
            error = state.outcome and state.outcome.exception()
            server_wait = (isinstance(error, PassingError) and error.wait) or 0.0
            # "At once", said again and again, must not become a storm.
            return server_wait if server_wait >= FIRST_PAUSE else max(server_wait, backoff(state))

        return pause

    def _enough(self, state: RetryCallState) -> bool:
        error = state.outcome and state.outcome.exception()
        if not isinstance(error, PassingError):
            return True
        if error.wait is not None and error.wait > PATIENCE:
            return True
        if error.busy:
            return (state.seconds_since_start or 0.0) > PATIENCE
        if error.unreachable and self._last_success is None:
            # Nothing listens there: that is soon said, and tried again by who asked.
            return state.attempt_number > 1
        return state.attempt_number > self._retries

    async def _adapting(self, form: Form, text: str, answers: list[str]) -> Reply:
        """One try; a field that this server does not know is left out or named otherwise, for good."""
        while True:
            known = frozenset(self._refused)
            try:
                return await self._once(form, text, answers)
            except RefusedError as error:
                reason = error.reason.lower()
                if self._logprobs and "logprobs" not in known and "logprobs" in reason:
                    self._refused.add("logprobs")
                elif "max_tokens" not in known and "max_completion_tokens" in reason:
                    self._refused.add("max_tokens")
                elif "temperature" in reason and self._form.temperature != 1:
                    hint = "set `temperature = 1` in [grader]"
                    raise GraderError(f"{self._client.base_url} {error.reason}: {hint}") from None
                elif (self._form.structured or self._form.schema) and re.search(
                    r"response_format|json_schema|structured_outputs|regex", reason
                ):
                    what = (
                        "take `structured` out of [grader]"
                        if self._form.structured
                        else 'set `structured = "none"` in [grader]'
                    )
                    raise GraderError(f"{self._client.base_url} {error.reason}: {what}") from None
                else:
                    raise

    async def _once(self, form: Form, text: str, answers: list[str]) -> Reply:
        import asyncio

        while True:
            async with self._places:
                closed = self._closed_until - time.monotonic()
                if closed <= 0:
                    return await self._posted(form, text, answers)
            await asyncio.sleep(closed)

    async def _in_turn(self, tokens: int) -> None:
        """Wait until a server that takes so much a minute takes so many tokens more."""
        import asyncio

        now = time.monotonic()
        start = max(now, self._free_at)
        self._free_at = start + self._pace.seconds(tokens)
        await asyncio.sleep(start - now)

    async def _posted(self, form: Form, text: str, answers: list[str]) -> Reply:
        expected = guessed(text) + self._meter.expected_out(form.max_tokens, short=bool(answers))
        await self._in_turn(expected)
        body: dict[str, Any] = form.body(
            text,
            answers,
            logprobs=self._logprobs and "logprobs" not in self._refused,
            new_limit="max_tokens" in self._refused,
        )
        if self._engine == SGLANG:
            body = sglang_body(body)
        try:
            response = await self._client.post(form.path, body)
        except PassingError as error:
            if error.wait is not None and error.wait <= PATIENCE:
                # It is told to one, and meant for all.
                self._closed_until = max(self._closed_until, time.monotonic() + error.wait)
            raise
        used = tokens(response)
        if used != (None, None):
            self._free_at += self._pace.seconds(sum(n or 0 for n in used)) - self._pace.seconds(expected)
        try:
            answer = reply(response, form.api)
        except PassingError:
            if used != (None, None):
                # Of no use, and paid for.
                self._meter.count(text, "", *used)
            raise
        self._meter.count(text, answer.text, *used)
        self._last_success = time.monotonic()
        return answer
