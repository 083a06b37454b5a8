"""A model's reply, from a server, a model in this process or the store: its text, and how it ended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

#: A token of a text, and the alternatives with their log-probabilities.
TokenStep = tuple[str, tuple[tuple[str, float], ...]]

#: Replies after which a grader of which none could be read is not asked any more.
FIRST = 20
#: Characters of a reply that are read, behind the model's thoughts. It is stored whole.
MOST_READ = 100_000
#: The remedy for a reply that ends early or inside a thought.
RAISE_LIMIT = "ends early: raise `max_new_tokens`"

# Tags of the first group are thoughts wherever they are. Tags of the second are ordinary words, and an
# opening one counts where it begins the reply or is closed.
_TAG = re.compile(
    r"<\s?(?P<close>/)?\s?(?:(?:seed:)?think(?:ing)?|thoughts?"
    r"|(?P<words>reasoning|analysis|reflection|scratchpad|rationale))(?:\s[^<>]{0,80})?>"
    r"|\[(?P<close2>/)?think\]|\u25c1(?P<close3>/)?think\u25b7"
    r"|<\|(?:(?P<close4>end)|begin)_of_thought\|>"
    r"|<\|(?:(?P<close5>end)|start)_thinking\|>",
    re.I,
)
_CLOSES = ("close", "close2", "close3", "close4", "close5")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w*)[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>")
_MESSAGE_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
#: Channels of harmony whose marks a server left out.
_BARE_ANALYSIS = re.compile(r"(?:assistant)?analysis(?=[A-Z])")
_BARE_FINAL = "assistantfinal"
_PROCESS = re.compile(r"here(?: i|')s my thought process:", re.I)
_RESPONSE = re.compile(r"here(?: i|')s my response:", re.I)
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060\u00ad\x00"
_BLANKS = _INVISIBLE + " \t\r\n\f\v\u00a0\u3000"
#: Control tokens that are taken from the end of a text.
_MOST_TOKENS = 16
_EDGE = r"(?:<\|[a-z_]{1,40}\|>|</?s>|<(?:end_of_turn|eos|pad)>|<\uff5c[^<>\s]{1,40}\uff5c>|\[/?INST\])"
_HEAD = re.compile(rf"(?:[\s{_INVISIBLE}]|{_EDGE})*+", re.I)
_TAIL = re.compile(rf"{_EDGE}\Z", re.I)
_FENCED = re.compile(r"```\w*\s*((?:(?!```).)*?)\s*```", re.DOTALL)


class WrittenText(NamedTuple):
    """A text that a model wrote. `cut`: it was stopped at the most tokens that a text may have.

    `tokens_in` and `tokens_out` are as a server counts them; None where nobody does. `refused`: the server
    says that the text is a refusal. `steps`: its tokens, where they were asked for.
    """

    text: str
    cut: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None
    refused: bool = False
    steps: tuple[TokenStep, ...] = ()


class Unwritten(NamedTuple):
    """The reason why there is no text, as follows "the model ...". The prompt can be sent again."""

    reason: str


class Unread(NamedTuple):
    """The reason why an answer cannot be used, in words that can be counted."""

    reason: str


#: Why an answer that was cut off, or is a thought without its end, is not used.
ENDED_EARLY = Unread(RAISE_LIMIT)


class ReplyText(NamedTuple):
    """A reply's text, `MOST_READ` characters at most. `ends_early`: more tokens could have given more.

    Of a reply that ends early the text is what there is of it; inside a thought there is none.
    """

    text: str
    ends_early: bool = False


def cut_at(text: str, limit: int, *, cut: bool) -> int | None:
    """Return the most tokens of a reply, if these ended it; a thought without its end counts as cut off."""
    return limit if read_reply(text, cut=cut).ends_early else None


def read_reply(reply: str, *, cut: bool = False) -> ReplyText:
    """Read a model's reply: its text without thoughts and control tokens, and how it ended.

    Args:
        cut: the model was stopped at the most tokens of a reply.
    """
    answer = _behind_thoughts(reply.lstrip(_BLANKS))
    if answer is None:
        return ReplyText("", ends_early=True)
    return ReplyText(_trimmed(answer)[:MOST_READ], cut)


def whole_text(reply: str, *, cut: bool = False) -> str | Unread:
    """Return the text of a reply; or why there is none to read: it ends early, or is empty."""
    text, ends_early = read_reply(reply, cut=cut)
    return ENDED_EARLY if ends_early else text if text.strip() else Unread("empty answer")


def _behind_thoughts(reply: str) -> str | None:
    """Return what is no thought; None where a thought has no end."""
    if "<|channel|>" in reply:
        finals = [match for match in _CHANNEL.finditer(reply) if match[1] == "final"]
        if not finals:
            return None
        reply = _MESSAGE_END.split(reply[finals[-1].end() :], maxsplit=1)[0]
    elif _BARE_ANALYSIS.match(reply):
        _, mark, reply = reply.rpartition(_BARE_FINAL)
        if not mark:
            return None
    elif _PROCESS.match(reply):
        response = _RESPONSE.search(reply)
        if response is None:
            return None
        reply = reply[response.end() :]
    return _without_tags(reply)


def _without_tags(reply: str) -> str | None:
    parts: list[str] = []
    # `certain`: without its end, the tag that is open begins a thought.
    start, opened, certain = 0, "", False
    for tag in _TAG.finditer(reply):
        closes = any(tag[key] for key in _CLOSES)
        thought = tag["words"] is None
        name = "thought" if thought else tag["words"].lower()
        if not closes:
            if not opened:
                parts.append(reply[start : tag.start()])
                start = tag.start()
            if not opened or (thought and not certain):
                opened, certain = name, thought or not "".join(parts).strip()
        elif name == opened and not thought:
            # A rating may stand before its reasoning.
            start, opened = tag.end(), ""
        elif name == opened or not opened or (thought and not certain):
            # What is before a thought is a false start, or a thought that the prompt's template opened.
            parts, start, opened = [], tag.end(), ""
    if opened and certain:
        return None
    return "".join(parts) + reply[start:]


def _trimmed(text: str) -> str:
    """Return the text without blanks, invisible characters and control tokens at its ends."""
    head = _HEAD.match(text)
    text = text[head.end() if head else 0 :].rstrip(_BLANKS)
    for _ in range(_MOST_TOKENS):
        tail = _TAIL.search(text, max(0, len(text) - 60))
        if tail is None:
            break
        text = text[: tail.start()].rstrip(_BLANKS)
    return text


def fence_removed(text: str) -> str:
    """Return what a code fence around the whole text holds; else the text."""
    fenced = _FENCED.fullmatch(text.strip())
    return fenced[1] if fenced else text


def json_value(text: str) -> Any:
    """Return the value of a text that is JSON, with or without a fence; None for other texts."""
    try:
        return json.loads(fence_removed(text), strict=False)
    except (ValueError, RecursionError):
        return None


def unwrapped(text: str) -> str:
    """Return the one text or number of a JSON object of one member; else the text."""
    value = json_value(text)
    if isinstance(value, dict) and len(value) == 1:
        (member,) = value.values()
        if isinstance(member, str | int) and not isinstance(member, bool):
            return str(member)
    return text


class FirstReplies:
    """Counts a grader's replies until one can be read; `read` and `unread` could be, or not, before.

    `sent` is of how many cells replies are requested.
    """

    def __init__(self, read: int = 0, unread: int = 0) -> None:
        self._read, self._unread = read, unread
        self.sent = self._answered = 0

    @property
    def are_unread(self) -> bool:
        """True with `FIRST` replies or more that cannot be read, and none that can."""
        return not self._read and self._unread >= FIRST

    def add(self, statuses: Iterable[str]) -> None:
        """Count replies by their status; one without a reply has another status than "ok" and "unparsed"."""
        for status in statuses:
            self._read += status == "ok"
            self._unread += status == "unparsed"
            self._answered += 1

    @property
    def are_due(self) -> bool:
        """True while the first ones, all sent, are waited for before anything else is sent."""
        return not self._read and self._answered < FIRST <= self.sent
