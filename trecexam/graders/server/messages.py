"""Bodies of requests, and what answers to them say: chat completions and plain completions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

#: Alternatives of a token that are requested: the most that OpenAI gives.
ALTERNATIVES = {"chat": 20, "completions": 5}
#: Where the alternatives that came have less probability than this together, they are no distribution.
COVERED = 0.99
#: Of one request: a server that says more does not count but make up numbers.
_MOST_TOKENS = 10**9
#: The least temperature of a list that is requested again, since at 0 the same would come: nuggetizer's.
TEMPERATURE_AGAIN = 0.2
#: Parts of a message that are the answer; others are thoughts, or pictures.
_ANSWER_PARTS = frozenset((None, "text", "output_text"))
#: What common models take for control tokens; a passage must not speak in the model's place.
_SPECIAL = re.compile(
    r"<\|[^<>|\s]{1,40}\|>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>"
    r"|<\uff5c[^<>\s]{1,40}\uff5c>"
)

Api = Literal["chat", "completions"]


class PassingError(Exception):
    """It may go well at the next try.

    Attributes:
        reason: what follows "the server ...".
        wait: seconds that the server asks to wait, None where it does not say.
        busy: there are too many requests.
        unreachable: no connection came about.
    """

    def __init__(
        self, reason: str, wait: float | None = None, *, busy: bool = False, unreachable: bool = False
    ) -> None:
        self.reason, self.wait, self.busy, self.unreachable = reason, wait, busy, unreachable
        super().__init__(reason)


class Unanswered(NamedTuple):
    """A request without an answer. `passing`: it may get one later. `filtered`: the server will not say."""

    reason: str
    passing: bool = False
    filtered: bool = False


def plain(text: str) -> str:
    """The text with a blank in everything that a model may take for a control token."""
    return _SPECIAL.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


@dataclass(frozen=True)
class Form:
    """How to call a server, whatever the cell.

    Attributes:
        temperature, seed, max_tokens: of the decoding; a seed of None is not sent.
        structured: restrict the answer to the permitted ones: "json_schema", or "choice" for vLLM and SGLang.
        extra: more fields of the body.
        system: what the model is told before each prompt; "" for nothing.
        schema: of the JSON object that an answer must be, where `structured` does not say it.
        number: of the permitted answers in a list; None for one answer.
    """

    api: Api
    model: str
    max_tokens: int
    temperature: float
    seed: int | None
    structured: Literal["json_schema", "choice"] | None
    extra: Mapping[str, Any]
    system: str = ""
    schema: Mapping[str, Any] | None = None
    number: int | None = None

    @property
    def path(self) -> str:
        return "chat/completions" if self.api == "chat" else "completions"

    def identity(self, answers: Iterable[Sequence[str]]) -> dict[str, Any]:
        """Settings that can change an answer; with `structured` the permitted ones are among them.

        The most tokens of a reply are not: a reply that ends by itself is the same under each limit, and the
        limit that ended another one is stored with it.
        """
        return {
            "api": self.api,
            "temperature": self.temperature,
            "seed": self.seed,
            "structured": self.structured and {self.structured: [list(each) for each in answers]},
            "extra": dict(self.extra),
            **({"system": self.system} if self.system else {}),
            **({"schema": dict(self.schema)} if self.schema else {}),
        }

    def body(self, text: str, answers: Sequence[str], *, logprobs: bool, new_limit: bool) -> dict[str, Any]:
        """The body that asks for one completion of `text`.

        Args:
            answers: the permitted ones.
            logprobs: ask for the probabilities of tokens.
            new_limit: give `max_tokens` the name that OpenAI's later models want.
        """
        chat = self.api == "chat"
        body: dict[str, Any] = {"model": self.model}
        if chat:
            instructions = [{"role": "system", "content": self.system}] if self.system else []
            body["messages"] = [*instructions, {"role": "user", "content": text}]
        else:
            body["prompt"] = f"{self.system}\n\n{text}" if self.system else text
        body["max_completion_tokens" if new_limit else "max_tokens"] = self.max_tokens
        body["temperature"] = self.temperature
        if self.seed is not None:
            body["seed"] = self.seed
        if logprobs:
            count = ALTERNATIVES[self.api]
            body |= {"logprobs": True, "top_logprobs": count} if chat else {"logprobs": count}
        if self.schema is not None or self.structured == "json_schema":
            schema = self._answer_schema(answers) if self.schema is None else dict(self.schema)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "grade", "strict": True, "schema": schema},
            }
        elif self.structured == "choice":
            body["structured_outputs"] = {"choice": list(answers)}
            if self.number is not None:
                label = f"'({'|'.join(map(re.escape, answers))})'"
                body["structured_outputs"] = {"regex": rf"\[{label}(, {label}){{{self.number - 1}}}\]"}
        return {**body, **self.extra}

    def _answer_schema(self, answers: Sequence[str]) -> dict[str, Any]:
        name = "answer"
        value: dict[str, Any] = {"type": "string", "enum": list(answers)}
        if self.number is not None:
            name = "labels"
            value = {"type": "array", "items": value, "minItems": self.number, "maxItems": self.number}
        return {
            "type": "object",
            "properties": {name: value},
            "required": [name],
            "additionalProperties": False,
        }

    def of_list(self, number: int, *, again: bool) -> Form:
        """Return the form of a request for a list of so many labels.

        Args:
            again: the first answer was no such list; it is sent again with a higher temperature, and with the
                next seed.
        """
        if not again:
            return replace(self, number=number)
        seed = None if self.seed is None else self.seed + 1
        temperature = max(TEMPERATURE_AGAIN, self.temperature)
        return replace(self, number=number, temperature=temperature, seed=seed)


def sglang_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with vLLM's `structured_outputs` as SGLang's field `regex`."""
    constraint = body.get("structured_outputs", {})
    permitted = constraint.get("regex") or "|".join(map(re.escape, constraint.get("choice", ())))
    if not permitted:
        return dict(body)
    return {**{name: body[name] for name in body if name != "structured_outputs"}, "regex": permitted}


#: A token of an answer, and the alternatives with their log-probabilities.
TokenStep = tuple[str, tuple[tuple[str, float], ...]]


class Reply(NamedTuple):
    """What a server answered. `cut`: it was stopped at the most tokens that an answer may have.

    `tokens_in` and `tokens_out` are None where it counts none.
    """

    text: str
    refused: bool
    steps: tuple[TokenStep, ...]
    cut: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


def reply(response: Mapping[str, Any], api: Api) -> Reply:
    """The answer in a server's JSON.

    Raises:
        PassingError: it has none.
    """
    choices = response.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise PassingError("answers with JSON that holds no completion")
    refused = choice.get("finish_reason") == "content_filter"
    if api == "chat":
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
    # Half of a surrogate pair, where an answer ends within a character, is no text that can be stored.
    text = text.encode(errors="replace").decode().strip()
    cut = choice.get("finish_reason") == "length"
    return Reply(text, refused, _steps(choice.get("logprobs"), api), cut, *tokens(response))


def tokens(response: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens in and out of a server's JSON; None where it counts none."""
    usage = response.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part for part in content if isinstance(part, dict) and part.get("type") in _ANSWER_PARTS)
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    return ""


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _steps(logprobs: object, api: Api) -> tuple[TokenStep, ...]:
    """Return steps that can be read; empty where there are none, or where they are not as asked."""
    if not isinstance(logprobs, dict):
        return ()
    try:
        if api == "chat":
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
    """The probability of each rating 0..5, from the alternatives of the token that is the answer.

    Args:
        text: what the answer says, without anything around.
        answers: the permitted ones with their ratings.

    Returns:
        Shares of the permitted answers, which sum to 1; None where the answer is not one of them, is not a
        single token, or the alternatives that came leave open how probable the others are.
    """
    ratings = dict(answers)
    answer = text.strip()
    if answer not in ratings:
        return None
    step = next((each for each in reversed(steps) if _bare(each[0]) == answer), None)
    if step is None:
        return None
    shares = [0.0] * 6
    total = 0.0
    for token, value in step[1]:
        share = math.exp(value)
        total += share
        if _bare(token) in ratings:
            shares[ratings[_bare(token)]] += share
    permitted = sum(shares)
    if total < COVERED or not permitted:
        return None
    return tuple(round(share / permitted, 6) for share in shares)


def _bare(token: str) -> str:
    return token.strip(" \t\n\u2581\u0120\"'{}")
