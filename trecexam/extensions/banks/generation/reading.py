"""Reading of items from a language model's answer, in any usual form.

Prompts request JSON. Models answer in code fences, after thoughts, amid prose, with trailing commas, as
Python lists, objects or numbered lists, or cut in the middle. Only unambiguous items are read, no prose.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import StringIO
from itertools import islice, pairwise
from tokenize import NL, STRING, generate_tokens
from typing import Any, Literal, NamedTuple

from trecexam.graders.replies import fence_removed, read_reply
from trecexam.packages import install, missing_packages

Kind = Literal["question", "nugget"]
#: Keys of item lists in an object, best first.
_LISTS = ("questions", "question_set", "nuggets", "nugget_set", "items")
#: Keys of an item's text in an object.
_TEXTS = ("question", "question_text", "nugget", "nugget_text", "text", "fact", "content")
#: Maximum characters of JSON to repair, and nesting depth: the library takes quadratic time in both.
MENDED, DEPTH = 16_384, 8
#: Maximum number of positions tried as the beginning of JSON.
_TRIES = 8
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.S)
#: The beginning of JSON or a Python list; brackets in prose are followed by other characters.
_START = re.compile(r"[\[{](?=\s*(?:[\"'\u201c\[{]|$))")
#: A bracket, or a string up to its end: a quote is inside unless a comma, a colon, a bracket ... follows it.
#: Possessive, so that thousands of quotes or line breaks cause no backtracking.
_TOKEN = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.?|"(?!\s{0,200}(?:[,:\]}"`/#]|\Z)))*+(?:"|\Z)', re.S)
_SINGLE = re.compile(r"\[\s*'([^\"\[\]{}]*)'\s*+,?\s*+\]?[\s}]*+\Z")
_BULLET = re.compile(r"\s*(?:(?:Q(?:uestion)?|Nugget)?\s*\(?\d{1,3}[.):]|[-*\u2022\u2013])\s+(\S.*)", re.I)
_NUMBER = re.compile(r"(?:(?:Q|Question|Nugget)\s*)?\(?\d{1,3}[.):]\s+|[-*\u2022\u2013]\s+", re.I)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\s]+")
#: The placeholders of the published prompts, repeated by the model.
_ECHO = re.compile(r"(?:question|nugget)_text_?\d+|\.\.\.|\u2026", re.I)
#: Packages to install before answers can be read; "" if nothing is missing.
missing_for_reading = partial(missing_packages, ("json_repair",), install("openai"))


class ReadItems(NamedTuple):
    """The texts of the items in an answer; `cut` where the answer ends early."""

    texts: tuple[str, ...]
    cut: bool = False


def read_items(answer: str, kind: Kind, *, cut: bool = False) -> ReadItems:
    """Read the items in an answer, without an incomplete last item.

    Args:
        cut: True if the model was stopped before its end.
    """
    text, cut = read_reply(answer, cut=cut)
    parts = (*(block[1] for block in _FENCE.finditer(text)), fence_removed(text))
    found = next((items for items in _readings(parts, kind, cut=cut) if items.texts), ReadItems(()))
    return found._replace(cut=found.cut or cut)


def _readings(parts: Sequence[str], kind: Kind, *, cut: bool) -> Iterator[ReadItems]:
    """Yield the items of the parts of an answer: as exact lists, as JSON amid other text, as lines."""
    yield from (ReadItems(tuple(_texts(_python_list(part)))) for part in parts)
    for part in parts:
        yield from (_json(part[start.start() :]) for start in islice(_START.finditer(part), _TRIES))
    yield from (ReadItems(_lines(part, kind, cut=cut)) for part in parts)


def _python_list(text: str) -> list[str]:
    """Return a list of texts as JSON or Python writes it; [] for anything else."""
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
    with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError), warnings.catch_warnings():
        # Warnings on escapes unknown to Python.
        warnings.simplefilter("ignore")
        if value is None and len(text) <= MENDED:
            value = ast.literal_eval(text.strip())
            kinds = [token.type for token in generate_tokens(StringIO(text.strip()).readline)]
            # Python joins two texts without a comma between them.
            if (STRING, STRING) in pairwise(kind for kind in kinds if kind != NL):
                return []
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return list(value) if is_list else []


def _json(text: str) -> ReadItems:
    """Read the items of JSON at the start of a text, or of consecutive objects."""
    texts: list[str] = []
    while True:
        whole, cut = _bounded(text)
        items = list(_texts(value := _value(whole)))
        texts += () if cut and texts else items
        further = re.match(r"[\s,]*(?=\{)", text[len(whole) :])
        if cut or not further or not isinstance(value, dict) or len(items) != 1:
            return ReadItems(tuple(texts), cut)
        text = text[len(whole) + further.end() :]


def _bounded(text: str) -> tuple[str, bool]:
    """Return the text from the first bracket to its closing bracket, and False.

    Without a closing bracket, return the text up to the last whole string, and True; "" if nested too deeply.
    """
    depth = last = 0
    for token in _TOKEN.finditer(text):
        if token[0] in ("[", "{"):
            depth += 1
            if depth > DEPTH:
                return "", False
            continue
        if token[0][0] == '"' and (len(token[0]) == 1 or token[0][-1] != '"'):
            break
        last = token.end()
        if token[0] in ("]", "}"):
            depth -= 1
            if depth == 0:
                return text[:last], False
    return text[:last], True


def _value(text: str) -> Any:
    """Return the value of JSON or repaired JSON; None for anything else."""
    from json_repair import loads

    with suppress(ValueError, RecursionError):
        return json.loads(text)
    single = _SINGLE.search(text)
    if single:
        # A Python list, in which apostrophes may be unescaped.
        return [part.replace("\\'", "'") for part in re.split(r"'\s*,\s*'", single[1])]
    with suppress(ValueError, RecursionError):
        return loads(text) if text and len(text) <= MENDED else None
    return None


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of items in a JSON value."""
    if isinstance(value, str) and not _ECHO.fullmatch(value.strip()):
        yield value
    parts = value if isinstance(value, list | tuple) else ()
    if isinstance(value, dict):
        text = next((value[key] for key in _TEXTS if isinstance(value.get(key), str)), None)
        named = next((value[key] for key in _LISTS if value.get(key)), None)
        if isinstance(named, str):
            named = _lines(named, "nugget", cut=False) or named
        # {"1": "...", "2": "..."}
        numbered = all(re.fullmatch(r"\D{0,12}\d{1,3}", str(key)) for key in value)
        others = [each for each in value.values() if numbered or isinstance(each, list | tuple | dict)]
        parts = others if named is None else [named]
        parts = parts if text is None else [text]
    for part in parts:
        yield from _texts(part)


def _lines(text: str, kind: Kind, *, cut: bool) -> tuple[str, ...]:
    """Return the items of a numbered or bulleted list, or of lines that are all questions."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" \t`")]

    def is_whole(line: str) -> bool:
        return kind == "nugget" or line.rstrip("\"'*_ ").endswith("?")

    bullets = [(line, match[1]) for line in lines if (match := _BULLET.fullmatch(line))]
    is_cut = cut and bullets and bullets[-1][0] == lines[-1] and (kind == "nugget" or not is_whole(lines[-1]))
    texts = [item for _, item in (bullets[:-1] if is_cut else bullets) if is_whole(item)]
    if len(bullets) >= 2 and texts:
        return tuple(texts)
    rest = lines[1:] if lines and lines[0].endswith(":") else lines
    return tuple(rest) if kind == "question" and len(rest) >= 2 and all(map(is_whole, rest)) else ()


def tidy(text: str) -> str:
    """Return an item's text on one line, without the number, quotes or stars that a model put around it."""
    text = _CONTROL.sub(" ", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")).strip()
    text = _NUMBER.sub("", text, count=1) if _NUMBER.match(text) else text
    for left, right in (("**", "**"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("`", "`")):
        inner = text[len(left) : -len(right)]
        if text.startswith(left) and text.endswith(right) and len(text) > 4 and left not in inner:
            text = inner.strip()
    return text
