"""A model behind a server: what is sent to it, what its answers say, what asking would take."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from trecexam.config import GeneratorSection, GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Estimate
from trecexam.graders.meter import Meter, Usage
from trecexam.graders.replies import TokenStep, WrittenText
from trecexam.packages import missing_for_servers

#: Alternatives of a token that are requested: the most that OpenAI gives.
ALTERNATIVES = {"chat": 20, "completions": 5}
#: Where the alternatives that came have less probability than this together, they are no distribution.
COVERED = 0.99
#: Of one request: a server that says more does not count but make up numbers.
_MOST_TOKENS = 10**9
#: Parts of a message that are the answer; others are thoughts, or pictures.
_ANSWER_PARTS = frozenset((None, "text", "output_text"))
#: What common models take for control tokens; a passage must not speak in the model's place.
_SPECIAL = re.compile(
    r"<\|[^<>|\s]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
    r"|<\uff5c[^<>\s]{1,40}\uff5c>"
)
#: Longer strings without a blank are not words.
_LONGEST_WORD = 100
#: How a passage that is too long for a server is cut, for identities.
TRUNCATION = f"end of passage, at a word of at most {_LONGEST_WORD} characters"


class PassingError(Exception):
    """A failure that may pass, of a server that is down, busy or broken.

    `reason` follows "the server ..."; `wait` are the seconds that the server asks to wait, if it does.
    """

    def __init__(
        self, reason: str, wait: float | None = None, *, busy: bool = False, unreachable: bool = False
    ) -> None:
        self.reason, self.wait, self.busy, self.unreachable = reason, wait, busy, unreachable
        super().__init__(reason)


class Request(NamedTuple):
    """A prompt and its permitted answers, of which a list has `number`; None for one answer."""

    text: str
    answers: Sequence[str] = ()
    number: int | None = None


class Server:
    """A model behind a server, and how it is called, whatever the prompt.

    Attributes:
        logprobs: ask for the probabilities of tokens; False once the server refused that.
        limit: what the server calls the most tokens of an answer.
        structured: restrict the answer to the permitted ones: "json_schema", or "choice" for vLLM and SGLang.
        system: what the model is told before each prompt; "" for nothing.
        schema: of the JSON object that an answer must be, where `structured` does not say it.

    Raises:
        GraderError: a package is missing, or a setting: address, model, or a price beside a budget.
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
        if missing := missing_for_servers():
            raise GraderError(f"a server cannot be asked: {missing}")
        if settings.base_url is None or settings.model is None:
            lacks = "`base_url`" if settings.base_url is None else "`model`"
            raise GraderError(
                f"`openai` needs {lacks} in [grader] of trecexam.toml: where the server is and what it calls "
                "its model"
            )
        self.settings, self.logprobs, self.limit = settings, logprobs, "max_tokens"
        self.structured, self.system, self.schema = structured, system, schema
        self.model, self.seed = settings.model, settings.seed
        self.new_tokens = settings.max_new_tokens or settings.server_tokens
        self.meter = Meter(settings)

    def decoding(self, answers: Iterable[Sequence[str]] = ()) -> dict[str, Any]:
        """Return settings that can change an answer; with `structured` the permitted ones are among them.

        The limit of tokens is not: a reply that it ends is stored with it.
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
        """Return the body that asks for one completion; `by_regex` for SGLang, which has no other field."""
        settings, text, chat = self.settings, request.text, self.settings.api == "chat"
        body: dict[str, Any] = {"model": settings.model}
        if chat:
            instructions = [{"role": "system", "content": self.system}] if self.system else []
            body["messages"] = [*instructions, {"role": "user", "content": text}]
        else:
            body["prompt"] = f"{self.system}\n\n{text}" if self.system else text
        body |= {self.limit: self.new_tokens, "temperature": settings.temperature}
        if settings.seed is not None:
            body["seed"] = settings.seed
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

    def taking(self, jobs: Iterable[tuple[int, Usage, Usage]]) -> Estimate:
        """Estimate jobs, each with its number of cells, or prompts, and its usage as expected and at most."""
        cells, expected, most = 0, Usage(), Usage()
        for number, of_job, most_of_job in jobs:
            cells, expected, most = cells + number, expected.plus(of_job), most.plus(most_of_job)
        tokens = expected.tokens_in, expected.tokens_out, most.tokens_out
        costs = self.meter.cost(expected), self.meter.cost(most)
        return Estimate(cells, *tokens, *costs, expected.requests, most.requests)


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


def plain(text: str) -> str:
    """Return the text with a blank in everything that a model may take for a control token."""
    return _SPECIAL.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def shortened(text: str, limit: int) -> str:
    """Return the text's first `limit` characters at most, cut at a word of less than a hundred characters."""
    if len(text) <= limit:
        return text
    part = text[: limit + 1]
    end = max(part.rfind(blank) for blank in " \n\t")
    return part[: end if end > max(0, limit - _LONGEST_WORD) else limit].rstrip()


def written(response: Mapping[str, Any], *, chat: bool) -> WrittenText:
    """Return the text in a server's JSON; without one raise a PassingError."""
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise PassingError("answers with JSON that holds no completion")
    refused = choice.get("finish_reason") == "content_filter"
    if chat:
        message = choice.get("message")
        if not isinstance(message, dict):
            raise PassingError("answers with JSON that holds no message")
        refusal = message.get("refusal")
        refused = refused or bool(refusal)
        text = _text(message.get("content")) or (str(refusal) if refusal else "")
    else:
        if not isinstance(choice.get("text"), str):
            raise PassingError("answers with JSON that holds no text")
        text = choice["text"]
    # Half of a surrogate pair, where an answer ends within a character, cannot be stored.
    text = text.encode(errors="replace").decode().strip()
    cut = choice.get("finish_reason") == "length"
    return WrittenText(text, cut, *tokens(response), refused, _steps(choice.get("logprobs"), chat=chat))


def tokens(response: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return tokens in and out of a server's JSON; None where it counts none."""
    usage = response.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    tokens_in, tokens_out = (n if type(n) is int and 0 <= n <= _MOST_TOKENS else None for n in counts)
    return tokens_in, tokens_out


def _text(content: object) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = (part for part in content if isinstance(part, dict) and part.get("type") in _ANSWER_PARTS)
    return "".join(text for part in parts if isinstance(text := part.get("text"), str))


def _steps(logprobs: object, *, chat: bool) -> tuple[TokenStep, ...]:
    """Return steps that can be read; empty where there are none, or where they are not as asked."""
    if not isinstance(logprobs, dict):
        return ()
    try:
        if chat:
            pairs = [
                (step["token"], ((each["token"], each["logprob"]) for each in step["top_logprobs"]))
                for step in logprobs["content"]
            ]
        else:
            alternatives = (each.items() for each in logprobs["top_logprobs"])
            pairs = [*zip(logprobs["tokens"], alternatives, strict=True)]
        steps = tuple((text, tuple((str(t), float(value)) for t, value in others)) for text, others in pairs)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return ()
    values = (value for _, others in steps for _, value in others)
    are_good = all(isinstance(text, str) for text, _ in steps) and all(value <= 1e-6 for value in values)
    return steps if are_good else ()


def distribution(
    steps: Sequence[TokenStep], text: str, answers: Sequence[tuple[str, int]]
) -> tuple[float, ...] | None:
    """Return the probability of each rating 0..5, from the alternatives of the token that is the answer.

    They are the shares of the permitted `answers`. None where `text` is none of these or no single token, or
    where the alternatives leave open how probable the others are.
    """
    ratings, answer = dict(answers), text.strip()
    step = next((each for each in reversed(steps) if _bare(each[0]) == answer), None)
    if answer not in ratings or step is None:
        return None
    alternatives = [(_bare(token), math.exp(value)) for token, value in step[1]]
    shares = [0.0] * 6
    for token, share in alternatives:
        if token in ratings:
            shares[ratings[token]] += share
    permitted = sum(shares)
    if sum(share for _, share in alternatives) < COVERED or not permitted:
        return None
    return tuple(round(share / permitted, 6) for share in shares)


def _bare(token: str) -> str:
    return token.strip(" \t\n\u2581\u0120\"'{}")
