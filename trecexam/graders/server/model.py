"""A model behind a server: asked many things at once, stopped at a limit; and what asking would take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from trecexam.config import GeneratorSection, GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Meter, Usage
from trecexam.graders.server.messages import Form
from trecexam.packages import install, missing_packages

if TYPE_CHECKING:
    pass

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
