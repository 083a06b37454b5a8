"""What a server's answers say: texts, tokens, and probabilities of ratings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trecexam.graders.writing.base import TokenStep, WrittenText

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


def plain(text: str) -> str:
    """Return the text with a blank in everything that a model may take for a control token."""
    return _SPECIAL.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)


def shortened(text: str, limit: int) -> str:
    """Return the text's first `limit` characters at most, without a word that would be cut.

    Scripts without spaces are cut between any two characters, and so are words of more than a hundred.
    """
    if len(text) <= limit:
        return text
    part = text[: limit + 1]
    end = max(part.rfind(blank) for blank in " \n\t")
    return part[: end if end > max(0, limit - _LONGEST_WORD) else limit].rstrip()


def written(response: Mapping[str, Any], *, chat: bool) -> WrittenText:
    """Return the text in a server's JSON.

    Raises:
        PassingError: it has none.
    """
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
    # Half of a surrogate pair, where an answer ends within a character, is no text that can be stored.
    text = text.encode(errors="replace").decode().strip()
    cut = choice.get("finish_reason") == "length"
    return WrittenText(text, cut, *tokens(response), refused, _steps(choice.get("logprobs"), chat=chat))


def tokens(response: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return tokens in and out of a server's JSON; None where it counts none."""
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
