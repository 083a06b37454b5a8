"""A model behind a server: asked many things at once, stopped at a limit; and what asking would take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from trecexam.config import GeneratorSection, GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Estimate, UngradedError, Usage
from trecexam.graders.server.messages import Form
from trecexam.graders.server.meter import Meter, reached
from trecexam.packages import install, missing_packages

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

Job = TypeVar("Job")
Result = TypeVar("Result")

#: What must be installed before a server can be asked; "" where nothing is missing.
missing_for_servers = partial(missing_packages, ("anyio", "httpx2", "nltk"), install("openai"))


class Server:
    """A model behind a server.

    Args:
        settings: where the server is, and how it is dealt with.
        logprobs: ask for the probabilities of tokens.
        structured, system, schema: see `Form`.

    Raises:
        GraderError: the settings do not say where the server is, or which model of it is meant; or there is
            a budget and no price.
    """

    def __init__(
        self,
        settings: GraderSection | GeneratorSection,
        *,
        logprobs: bool = False,
        structured: Literal["json_schema", "choice"] | None = None,
        system: str = "",
        schema: Mapping[str, Any] | None = None,
    ) -> None:
        if settings.base_url is None or settings.model is None:
            lacks = "`base_url`" if settings.base_url is None else "`model`"
            raise GraderError(
                f"`openai` needs {lacks} in [grader] of trecexam.toml: where the server is and what it calls "
                "its model"
            )
        self.settings, self.logprobs = settings, logprobs
        self.form = Form(
            settings.api,
            settings.model,
            settings.max_new_tokens or settings.server_tokens,
            settings.temperature,
            settings.seed,
            structured,
            settings.extra,
            system,
            schema,
        )
        self.meter = Meter(settings)
        #: Names of fields that the server refused; they are not sent again.
        self.refused: set[str] = set()

    def asked(
        self,
        probe: tuple[str, list[str]],
        jobs: Iterable[Job],
        most: Callable[[Job], Usage],
        ask: Callable[[Exchange, Job], Coroutine[Any, Any, Result]],
        *,
        then: str,
        ahead: int = 1,
        gather: float | None = None,
        waits: Callable[[], bool] = lambda: False,
    ) -> Generator[list[tuple[Job, Result]], None, None]:
        """Ask, as long as no limit could be passed by the next job; yield each job with what came of it.

        Args:
            probe: a harmless prompt and its permitted answers.
            most: what a job takes at most, by guessed tokens in.
            ask: does a job.
            then: what a higher limit is for, as follows "raise it".
            ahead: jobs under way for each of the `concurrency` places, so that none stands empty.
            gather: seconds for which results wait for others; None for `BEAT`.
            waits: tells whether no job is to be started before another one ends.

        Raises:
            UngradedError: a limit is in the way of the next job.
            GraderError: the server answers to nothing.
        """
        from trecexam.graders.server.exchange import BEAT, exchanging, flow

        rest, waiting, limit, underway = iter(jobs), list[Job](), "", Usage()

        def surely(job: Job) -> Usage:
            """Return what a job will not pass, whatever the language."""
            usage = most(job)
            return usage._replace(tokens_in=2 * usage.tokens_in)

        async def done(exchange: Exchange, job: Job) -> tuple[Job, Result]:
            return job, await ask(exchange, job)

        def work() -> Callable[[], Coroutine[Any, Any, tuple[Job, Result]]] | None:
            nonlocal limit, underway
            if waits():
                return None
            job = waiting.pop() if waiting else next(rest, None)
            if job is None:
                return None
            # A job on its way counts as much as it may become.
            limit = self.meter.passes(underway.plus(surely(job)))
            if limit:
                waiting.append(job)
                return None
            underway = underway.plus(surely(job))
            return partial(done, exchange, job)

        with exchanging(self, probe) as (portal, exchange):
            gather = BEAT if gather is None else gather
            with contextlib.closing(flow(portal, work, exchange.at_once * ahead, gather)) as batches:
                for results in batches:
                    for job, _ in results:
                        underway = underway.less(surely(job))
                    yield results
        if limit:
            raise UngradedError(reached(limit, then))

    def estimate(self, cells: int, expected: Usage, most: Usage) -> Estimate:
        """Return what so many cells, or prompts, take, as expected and at most."""
        return Estimate(
            cells,
            expected.tokens_in,
            expected.tokens_out,
            most.tokens_out,
            self.meter.cost(expected),
            self.meter.cost(most),
            calls=expected.requests,
            calls_at_most=most.requests,
        )
