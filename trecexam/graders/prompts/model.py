"""What a prompt is: a text with slots, what it asks about, and how its answers are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from converters.records import Item
from trecexam.graders.prompts import parsing
from trecexam.graders.prompts.answer_key import correct_answer, is_correct
from trecexam.graders.prompts.parsing import ASSIGNMENTS, read_assignment, read_labels
from trecexam.graders.replies import read_reply, unwrapped
from trecexam.templates import filled, slots

#: What a template may name. `context`, `passage`, `citation` and `answer` are the same: the graded text.
#: `correct_answer` is the item's answer key.
SLOTS = (
    "question", "nugget", "query", "statement", "correct_answer", "answer", "context", "passage", "citation"
)  # fmt: skip
SCALES = {"yes_no": 1, "answer": 1, "answer_key": 1, "support": 2}
_LABEL = re.compile(r"^\W*([0-9])\s*[:=]\s*(\S.*?)\s*$", re.M)
_CONTEXT_LAST = " Context: {context}"


def usual_answers(parser: str, max_rating: int) -> tuple[tuple[str, int], ...]:
    """Return the answers that prompts of a parser permit, with their ratings, best first."""
    ratings = range(max_rating, -1, -1)
    usual: Mapping[str, tuple[tuple[str, int], ...]] = {
        "rating": tuple((str(rating), rating) for rating in ratings),
        "yes_no": (("Yes", 1), ("No", 0)),
        "support": parsing.SUPPORT,
        "assignment": ASSIGNMENTS,
        "final_score": tuple((f"##final score: {rating}", rating) for rating in ratings),
    }
    return usual.get(parser, ())


@dataclass(frozen=True)
class Prompt:
    """A grading prompt.

    Attributes:
        name: as the field knows it.
        version, template: parts of the identity; the text has slots in braces, or those of Jinja (`jinja`).
        asks: "question", "nugget", "statement" or "query": items of that kind are graded, or the passage's
            relevance to the query itself.
        parser: how an answer becomes a rating, see `read`.
        answers: permitted answers and their ratings, best first; empty for free text.
        max_rating: best rating on its scale (the worst is 0).
        min_rating: a passage counts from this rating on, unless the track says.
        source: its publication.
        verification: prompt that is sent next, with the answer as its text; its answer is the rating.
        system: text for the model before the prompt; "" for none.
        group: the most items of a query in one prompt. If several, the slots are {nuggets} (a list) and
            {num_nuggets}, and the answer is a list of as many labels.
    """

    name: str
    version: str
    template: str
    asks: str
    parser: str
    answers: tuple[tuple[str, int], ...] = ()
    max_rating: int = 5
    min_rating: int = 4
    source: str = ""
    jinja: bool = False
    verification: Prompt | None = None
    system: str = ""
    group: int = 1

    @cached_property
    def needs_key(self) -> bool:
        """True for a prompt that can only grade items that have an answer key."""
        if self.verification is not None and self.verification.needs_key:
            return True
        return self.parser == "answer_key" or "correct_answer" in slots(self.template, jinja=self.jinja)

    @property
    def needs_query_text(self) -> bool:
        """True for a prompt that names the query's text beside the item it asks about."""
        return self.asks != "query" and "query" in slots(self.template, jinja=self.jinja)

    @cached_property
    def labels(self) -> Mapping[int, str]:
        """What the prompt says of each rating, where its text has a scale."""
        return {int(digit): text for digit, text in _LABEL.findall(self.template)}

    def text(self, query: str, item: Item, passage: str) -> str:
        """Return the prompt for one cell. A slot's name inside a question or passage stays unchanged.

        Raises:
            GraderError: a Jinja template cannot be filled in with these values.
        """
        return self.list_text(query, [item], passage)

    def list_text(self, query: str, items: Sequence[Item], passage: str) -> str:
        """Return the prompt for these items with one passage; several are a list as Python writes it."""
        values = dict.fromkeys(("context", "passage", "citation", "answer"), passage) | {"query": query}
        if self.group > 1:
            values |= {"num_nuggets": str(len(items)), "nuggets": str([item.text for item in items])}
        else:
            values |= dict.fromkeys(("question", "nugget", "statement"), "")
            values |= {"correct_answer": correct_answer(items[0]), self.asks: items[0].text}
        return filled(self.template, values, jinja=self.jinja, name=self.source)

    def read(self, reply: str, item: Item, compat: str | None = None, *, cut: bool = False) -> int | None:
        """Read the rating that a reply means. A permitted answer means its own, whatever else is read.

        Args:
            compat: "workbench" reads as the Rubric workbench's released code does.
            cut: the model was stopped at the most tokens: the reply counts where it is complete by itself.
        """
        text = read_reply(reply).text
        if not text and reply.strip():
            return None
        answer = unwrapped(text)
        if answer in self._ratings:
            return self._ratings[answer]
        if compat is not None:
            # The workbench's code reads whatever a reply is.
            cut = False
            if self.parser in ("rating", "yes_no", "answer"):
                return parsing.read_as_workbench(self.parser, answer, self.max_rating)
        # Of a reply that was cut off, a point may begin decimals.
        elif (plain := answer.casefold() if cut else _plain(answer)) in self._plain_ratings:
            return self._plain_ratings[plain]
        if self.parser == "rating":
            return parsing.read_rating(answer, self.max_rating, self.labels, cut=cut)
        if self.parser == "final_score":
            return parsing.read_final_score(answer, self.max_rating, cut=cut)
        if self.parser == "support":
            return parsing.read_support(answer, cut=cut)
        if self.parser == "assignment":
            return read_assignment(text, self._ratings, cut=cut)
        if self.parser == "answer_key":
            is_right = is_correct(text if cut else answer, item.gold_answers)
            return int(is_right) if is_right or not cut else None
        if cut:
            return None
        return parsing.read_yes_no(answer) if self.parser == "yes_no" else parsing.read_answer(answer)

    def read_list(self, reply: str, number: int, *, cut: bool = False) -> list[str] | None:
        """Read the labels of `number` items, see `read_labels`; None where the reply has no such list."""
        return read_labels(read_reply(reply).text, number, self._ratings, cut=cut)

    @cached_property
    def _ratings(self) -> Mapping[str, int]:
        return dict(self.answers)

    @cached_property
    def _plain_ratings(self) -> Mapping[str, int]:
        return {_plain(answer): rating for answer, rating in self.answers}

    def passage_first(self) -> Prompt:
        """Return the prompt with the passage before everything else, where its text allows.

        The items of one passage then begin with the same tokens, which a decoder-only model reads once.
        """
        if self.jinja or not self.template.endswith(_CONTEXT_LAST):
            return self
        rest = self.template.removesuffix(_CONTEXT_LAST)
        return replace(
            self, template=f"Context: {{context}}\n{rest}", version=f"{self.version}-passage-first"
        )

    def identity(self) -> dict[str, Any]:
        """Return all that can change what a model writes; how answers are read cannot, and runs no model."""
        return {
            "name": self.name,
            "version": self.version,
            "template": self.template,
            "asks": self.asks,
            **({"verification": self.verification.identity()} if self.verification else {}),
            **({"system": self.system} if self.system else {}),
            **({"group": self.group} if self.group > 1 else {}),
        }


def _plain(answer: str) -> str:
    return answer.strip().removesuffix(".").casefold()
