"""A model behind a server: what is sent to it, what asking would take; and how it writes texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from trecexam.config import GeneratorSection, GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Estimate, UngradedError
from trecexam.graders.meter import Meter, Usage, guessed
from trecexam.graders.server.messages import plain, shortened
from trecexam.graders.writing.base import Fitted, Unwritten, WrittenText, naming
from trecexam.packages import install, missing_packages

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

#: Alternatives of a token that are requested: the most that OpenAI gives.
ALTERNATIVES = {"chat": 20, "completions": 5}
#: The least temperature of a list that is requested again, since at 0 the same would come: nuggetizer's.
TEMPERATURE_AGAIN = 0.2

#: What must be installed before a server can be asked; "" where nothing is missing.
missing_for_servers = partial(missing_packages, ("anyio", "httpx2", "nltk"), install("openai"))


class Request(NamedTuple):
    """A prompt and its permitted answers.

    `number`: so many of these are wanted, in a list; None for one answer. `again`: the first answer was no
    such list; the prompt is sent with a higher temperature, and with the next seed.
    """

    text: str
    answers: Sequence[str] = ()
    number: int | None = None
    again: bool = False


#: Tells a server that takes nothing from one that does not take a certain prompt.
_PROBE = Request("Write one question about the capital of France.")


class Server:
    """A model behind a server, and how it is called, whatever the prompt. It is a `Writer`, too.

    Attributes:
        section: of trecexam.toml, that errors name.
        logprobs: ask for the probabilities of tokens; False once the server refused that.
        limit: what the server calls the most tokens of an answer.
        structured: restrict the answer to the permitted ones: "json_schema", or "choice" for vLLM and SGLang.
        system: what the model is told before each prompt; "" for nothing.
        schema: of the JSON object that an answer must be, where `structured` does not say it.

    Raises:
        GraderError: the settings do not say where the server is, or which model of it is meant; or there is
            a budget and no price.
    """

    environment = None
    is_here = False

    def __init__(
        self,
        settings: GraderSection | GeneratorSection,
        section: str = "grader",
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
        self.settings, self.section = settings, section
        self.logprobs, self.limit = logprobs, "max_tokens"
        self.structured, self.system, self.schema = structured, system, schema
        self.model, self.seed = settings.model, settings.seed
        self.new_tokens = settings.max_new_tokens or settings.server_tokens
        self.meter = Meter(settings)

    @property
    def path(self) -> str:
        return "chat/completions" if self.settings.api == "chat" else "completions"

    def decoding(self, answers: Iterable[Sequence[str]] = ()) -> dict[str, Any]:
        """Return settings that can change an answer; with `structured` the permitted ones are among them.

        The most tokens of a reply are not: a reply that ends by itself is the same under each limit, and the
        limit that ended another one is stored with it.
        """
        settings = self.settings
        return {
            "api": settings.api,
            "temperature": settings.temperature,
            "seed": settings.seed,
            "structured": self.structured and {self.structured: [list(each) for each in answers]},
            "extra": dict(settings.extra),
            **({"system": self.system} if self.system else {}),
            **({"schema": dict(self.schema)} if self.schema else {}),
        }

    def body(self, request: Request, *, by_regex: bool) -> dict[str, Any]:
        """Return the body that asks for one completion.

        Args:
            by_regex: SGLang's field `regex` in the place of vLLM's `structured_outputs`.
        """
        settings, text, chat = self.settings, request.text, self.settings.api == "chat"
        body: dict[str, Any] = {"model": settings.model}
        if chat:
            instructions = [{"role": "system", "content": self.system}] if self.system else []
            body["messages"] = [*instructions, {"role": "user", "content": text}]
        else:
            body["prompt"] = f"{self.system}\n\n{text}" if self.system else text
        temperature, seed = settings.temperature, settings.seed
        if request.again:
            temperature, seed = max(TEMPERATURE_AGAIN, temperature), None if seed is None else seed + 1
        body |= {self.limit: self.new_tokens, "temperature": temperature}
        if seed is not None:
            body["seed"] = seed
        if self.logprobs:
            count = ALTERNATIVES[settings.api]
            body |= {"logprobs": True, "top_logprobs": count} if chat else {"logprobs": count}
        if self.schema is not None or self.structured == "json_schema":
            schema = _answer_schema(request) if self.schema is None else dict(self.schema)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "grade", "strict": True, "schema": schema},
            }
        elif self.structured == "choice":
            one = "|".join(map(re.escape, request.answers))
            permitted: dict[str, Any] = {"choice": list(request.answers)}
            if request.number is not None:
                label = f"'({one})'"
                permitted = {"regex": rf"\[{label}(, {label}){{{request.number - 1}}}\]"}
            if by_regex:
                body["regex"] = permitted.get("regex", one)
            else:
                body["structured_outputs"] = permitted
        return {**body, **settings.extra}

    def taking(self, cells: int, expected: Usage, most: Usage) -> Estimate:
        """Return the estimate of so many cells, or prompts, that take so much, as expected and at most."""
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

    @property
    def _max_characters(self) -> int | None:
        return self.settings.max_characters if isinstance(self.settings, GraderSection) else None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "writer": "openai",
            "model": self.model,
            # Which weights the server has under the model's name, in the user's words.
            "revision": self.settings.revision,
            "decode": self.decoding(),
            **({"max_characters": self._max_characters} if self._max_characters else {}),
        }

    def plain(self, text: str) -> str:
        return plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        limit = self._max_characters
        part = text if limit is None else shortened(text, limit)
        return Fitted(render(plain(part)), cut=len(part) < len(text))

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        from trecexam.graders.server.exchange import asked

        unanswered: list[str] = []
        with naming(self.section):
            # An answer is on disk before a prompt goes out in its place, see `Job`.
            batches = asked(self, _PROBE, prompts, self._most, _ask, then="to go on", gather=0)
            with closing(batches):
                for results in batches:
                    passing = [text for _, text in results if isinstance(text, Unwritten) and text.passing]
                    unanswered += (text.reason for text in passing)
                    yield [(prompt, _written(text)) for prompt, text in results if text not in passing]
            if unanswered:
                raise UngradedError(
                    f"{self.settings.base_url} gave no answer to {len(unanswered):,} prompts, which "
                    f"are sent again next time: it {unanswered[-1]}"
                )

    def _most(self, prompt: str) -> Usage:
        return Usage(1, guessed(f"{self.system}{prompt}"), self.new_tokens)

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        most = expected = Usage()
        for prompt in prompts:
            worst = self._most(prompt)
            most = most.plus(worst)
            tokens_out = self.meter.expected_out(worst.tokens_out, short=False)
            expected = expected.plus(worst._replace(tokens_out=tokens_out))
        return self.taking(len(prompts), expected, most)


async def _ask(exchange: Exchange, prompt: str) -> WrittenText | Unwritten:
    return await exchange.ask(Request(prompt))


def _written(text: WrittenText | Unwritten) -> WrittenText | Unwritten:
    if isinstance(text, WrittenText):
        if not text.refused:
            return text
        text = Unwritten(f"refused: {text.text[:200]}", refused=True)
    return text._replace(reason=f"gave no answer: it {text.reason}")


def _answer_schema(request: Request) -> dict[str, Any]:
    name, number = "answer", request.number
    value: dict[str, Any] = {"type": "string", "enum": list(request.answers)}
    if number is not None:
        name, value = "labels", {"type": "array", "items": value, "minItems": number, "maxItems": number}
    return {
        "type": "object",
        "properties": {name: value},
        "required": [name],
        "additionalProperties": False,
    }
