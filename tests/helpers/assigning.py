"""Answers of a scripted server to prompts about several nuggets at once."""

from __future__ import annotations

import ast
import hashlib

from scripted_server import Exchange

LABELS = ("support", "partial_support", "not_support")


def nuggets_in(prompt: str) -> list[str]:
    """The nuggets in a prompt."""
    line = next(line for line in prompt.splitlines() if line.startswith("Nugget List: "))
    nuggets: list[str] = ast.literal_eval(line.removeprefix("Nugget List: "))
    return nuggets


def label_of(nugget: str, passage: str) -> str:
    """A label that depends on both."""
    return LABELS[hashlib.sha256(f"{nugget}|{passage}".encode()).digest()[0] % 3]


def passage_in(prompt: str) -> str:
    return prompt.split("\nPassage: ")[1].split("\nNugget List: ")[0]


def assign(exchange: Exchange) -> None:
    """A list of the right length."""
    passage = passage_in(exchange.prompt)
    exchange.say(str([label_of(nugget, passage) for nugget in nuggets_in(exchange.prompt)]))
