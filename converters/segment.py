"""Splits texts into passages at sentence ends, and turns responses into passages and rankings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from converters.records import Passage, Response

#: Words and punctuation marks that a passage has at most.
MAX_TOKENS = 400
#: What is in a pool for a generative system: its own text, the passages that it cites, or both.
Pool = Literal["text", "citations", "both"]
#: What of a system's own text is graded as one: parts of some hundred words, or a response as a whole.
Unit = Literal["passage", "response"]

#: Characters that sentences are looked for in at once.
_BLOCK = 10_000
_TOKEN = re.compile(r"\w+|[^\w\s]")
#: White space ends a column of a qrels file; "/" separates the parts of our ids and "%" begins an escape.
_UNSAFE = re.compile(r"[\s/%\x00-\x1f\x7f]")


class RankedPassage(NamedTuple):
    """A line of the run of a generative system. `score` decreases with the rank."""

    query_id: str
    doc_id: str
    score: float


def segments(text: str, max_tokens: int = MAX_TOKENS) -> list[str]:
    """Splits a text into parts of at most `max_tokens` tokens, at sentence ends if possible.

    Args:
        max_tokens: words and punctuation marks.

    Returns:
        The parts without white space around; none is empty. All words are in them, in order.
    """
    from sentencex import segment

    parts: list[str] = []
    part, size = "", 0
    # English: the language tells abbreviations from ends.
    for sentence in (s for block in _blocks(text) for s in segment("en", block)):
        for piece, tokens in _pieces(sentence, max_tokens):
            if part.strip() and size + tokens > max_tokens:
                parts.append(part)
                part, size = "", 0
            part, size = part + piece, size + tokens
    parts.append(part)
    return [part.strip() for part in parts if part.strip()]


def _blocks(text: str) -> Iterator[str]:
    """The text in blocks, because the splitter's time can be quadratic."""
    start = 0
    while len(text) - start > _BLOCK:
        window = start + _BLOCK
        cuts = (text.rfind(mark, start + _BLOCK // 2, window) + len(mark) for mark in ("\n", ". ", " "))
        cut = next((cut for cut in cuts if cut > start + _BLOCK // 2), window)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _pieces(sentence: str, max_tokens: int) -> Iterator[tuple[str, int]]:
    """A sentence, cut every `max_tokens` tokens: (text, tokens)."""
    starts = [token.start() for token in _TOKEN.finditer(sentence)]
    cuts = [0, *starts[max_tokens::max_tokens], len(sentence)]
    for piece_index, (start, end) in enumerate(pairwise(cuts)):
        yield sentence[start:end], min(max_tokens, len(starts) - piece_index * max_tokens)


def passage_id(run: str, query_id: str, number: int) -> str:
    """The id of a response's passage, stable and without white space.

    Different (run, query, place) never have the same: white space, "/" and "%" inside of names are
    percent-encoded.
    """
    return f"{safe_name(run)}/{safe_name(query_id)}/{number}"


def response_id(run: str, query_id: str) -> str:
    """The id of a whole response, as in nuggetizer's assignments."""
    return f"{safe_name(run)}/{safe_name(query_id)}"


def safe_name(name: str) -> str:
    """A name for use in an id, with white space, "/" and "%" percent-encoded."""
    return _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


def response_passages(response: Response, *, unit: Unit = "passage") -> list[Passage]:
    """The passages of a response, in order; numbers in ids count from 1.

    With the unit "response" it is one passage, however long; one without any text has none.
    """
    if unit == "response":
        whole = Passage(response_id(response.run, response.query_id), response.text)
        return [whole] if response.text.strip() else []
    return [
        Passage(passage_id(response.run, response.query_id, number), text)
        for number, text in enumerate(segments(response.text), 1)
    ]


def response_ranking(
    response: Response,
    pool: Pool = "text",
    *,
    unit: Unit = "passage",
    passages: Sequence[Passage] | None = None,
) -> list[RankedPassage]:
    """The ranked passages of a response.

    Its own passages as they follow, or the documents that it cites, those cited first coming first; with
    "both" its own passages and then the documents.

    Args:
        passages: those of `response_passages`, where they are known.
    """
    doc_ids: list[str] = []
    if pool != "citations":
        own_passages = response_passages(response, unit=unit) if passages is None else passages
        doc_ids += (passage.doc_id for passage in own_passages)
    if pool != "text":
        doc_ids += (citation.doc_id for sentence in response.sentences for citation in sentence.citations)
    order = list(dict.fromkeys(doc_ids))
    return [
        RankedPassage(response.query_id, doc_id, float(len(order) - rank))
        for rank, doc_id in enumerate(order)
    ]


def run_lines(responses: Iterable[Response], pool: Pool = "text") -> Iterator[RankedPassage]:
    """The rankings of many responses, one after the other."""
    for response in responses:
        yield from response_ranking(response, pool)
