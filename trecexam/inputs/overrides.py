"""People's ratings and judgments: their scale, and which of them count on the bank and pool as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from converters.overrides import ADJUDICATED, UNDONE
from converters.records import HumanRating, Item, Qrel
from trecexam.bank.model import Bank, item_digest, passage_digest
from trecexam.config.sections import Rule
from trecexam.config.track_config import TrackConfig
from trecexam.files.stamps import Rejected
from trecexam.scores.ratings import MAX_RATING

COUNTS, REPLACED, WITHDRAWN, REFUSED, RETIRED = "counts", "replaced", "withdrawn", "refused", "retired"
NOT_POOLED, NOT_CITED = "not pooled", "not cited"
CANNOT_JUDGE, OVERRULED, UNDECIDED = "cannot judge", "overruled", "not adjudicated"


#: Names of the labels 0, 1, ... by the highest label. Those of 0..3 are TREC Deep Learning's.
_NAMES = {
    1: ("not relevant", "relevant"),
    2: ("not relevant", "relevant", "highly relevant"),
    3: ("irrelevant", "related", "highly relevant", "perfectly relevant"),
    4: ("not relevant", "slightly relevant", "moderately relevant", "highly relevant", "fully relevant"),
    5: (
        "not relevant",
        "slightly relevant",
        "somewhat relevant",
        "moderately relevant",
        "highly relevant",
        "perfectly relevant",
    ),
}
#: Names of the rubric's ratings 0..5, after the grader's published prompt.
_RUBRIC = (
    "not relevant or complete at all",
    "minimally relevant or complete",
    "of limited relevance and completeness",
    "partially relevant and complete",
    "mostly relevant and complete",
    "highly relevant and complete",
)


@dataclass(frozen=True)
class JudgingScale:
    """The scale of people's judgments of whole passages: names of 0, 1, ..., and what sets it."""

    names: tuple[str, ...]
    source: str

    @property
    def best(self) -> int:
        """The highest judgment."""
        return len(self.names) - 1

    def __str__(self) -> str:
        return f"0..{self.best}"


def judging_scale(config: TrackConfig, official: Collection[Qrel] | None) -> JudgingScale | None:
    """Return the scale on which people judge whole passages; None: on the grader's scale.

    The scale of [judging] comes first. Else it is 0 to the highest official label, or to `min_relevant` if
    that is higher. Tracks of whole responses, and official labels above 5, have no such scale.
    """
    if config.judging.scale is not None:
        return JudgingScale(tuple(config.judging.scale), "`scale` in [judging]")
    if not official or config.track.unit == "response":
        return None
    best = max(1, config.scores.min_relevant, *(row.relevance for row in official))
    return JudgingScale(_NAMES[best], "the scale of the official judgments") if best <= MAX_RATING else None


def rubric_names(max_rating: int) -> tuple[str, ...]:
    """Return the names of the ratings 0..`max_rating` of a whole passage on a grader's scale."""
    return _RUBRIC if max_rating == MAX_RATING else _NAMES.get(max_rating, ())


class Decision(NamedTuple):
    """A line of overrides.tsv, and what became of it.

    `state` is "counts"; "replaced" by a later line; "withdrawn" or "cannot judge", as the person said; "not
    pooled", where the passage is not in the pool now; "not cited", where no response has the sentence with
    this citation now; "retired", where the item is, or all items of the query; or "refused", with a row in
    rejected.tsv. By the rules `majority` and `adjudicated` it may be "overruled" by what other people say, or
    "not adjudicated", where people differ.
    """

    line: int
    row: HumanRating
    state: str


@dataclass(frozen=True)
class QueryOverrides:
    """People's ratings of one query's pool, by (doc_id, item_id), and of passages as a whole."""

    cells: dict[tuple[str, str], int] = field(default_factory=dict)
    passages: dict[str, int] = field(default_factory=dict)

    @property
    def token(self) -> tuple[object, ...]:
        """Key of the ratings."""
        return tuple(sorted(self.cells.items())), tuple(sorted(self.passages.items()))


@dataclass(frozen=True)
class Overrides:
    """The human ratings of a track.

    Attributes:
        queries: query_id -> what counts there.
        agreeing: (query_id, doc_id, item_id or "") -> the lines that count for it, the rating last; several
            by the rules `majority` and `adjudicated`. Passages with the same text have the same lines.
        decisions: every line that could be read, in the file's order.
        rejected: the lines that were refused, with reasons.
    """

    queries: Mapping[str, QueryOverrides] = field(default_factory=dict)
    agreeing: Mapping[tuple[str, str, str], tuple[HumanRating, ...]] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    rejected: tuple[Rejected, ...] = ()

    @cached_property
    def ratings(self) -> Mapping[tuple[str, str, str], HumanRating]:
        """The rating that counts, by the keys of `agreeing`."""
        return {key: rows[-1] for key, rows in self.agreeing.items()}


def resolve(
    rows: Iterable[tuple[int, HumanRating]],
    file: str,
    bank: Bank,
    pool: Mapping[str, Sequence[str]],
    texts: Mapping[str, str],
    max_rating: int,
    rule: Rule = "latest",
    *,
    own_scale: JudgingScale | None = None,
    cited: Collection[tuple[str, str, str]] | None = None,
) -> Overrides:
    """Decide which ratings count.

    Of one person the last line for a cell or passage counts; of several people what `rule` says. A line that
    was given on another text than the passage or item has now is refused: it says nothing about this one. A
    rating counts for every pooled passage of the query with the same text, as a grade does.

    A line without a rating takes back what counts: by the rule "latest" what everybody said, else what its
    writer said, or everybody where she said nothing. One of the kind "undone" takes back its writer's alone.

    Args:
        rows: the lines and their numbers.
        file: their file, as people see it.
        pool: query_id -> pooled doc_ids.
        texts: doc_id -> text.
        max_rating: the best rating on the grader's scale.
        rule: see [judging].
        own_scale: they are judgments of whole passages on this scale, not on the grader's.
        cited: (query_id, doc_id, item_id) of all cells, where items belong to some passages; a line on
            another one is "not cited".
    """
    decisions: dict[int, Decision] = {}
    rejected: list[Rejected] = []
    #: Of each cell, the last line of each person, and apart from it her last one that decides between people.
    voices: dict[tuple[str, str | None, str, str], dict[tuple[str, bool], int]] = {}
    for line, row in rows:
        if cited is not None and row[:3] not in cited:
            decisions[line] = Decision(line, row, NOT_CITED)
            continue
        reason = _refused(row, bank, texts, max_rating, own_scale)
        if reason:
            rejected.append(Rejected(file, line, reason, "line"))
            decisions[line] = Decision(line, row, REFUSED)
            continue
        decisions[line] = Decision(line, row, WITHDRAWN if takes_back(row) else CANNOT_JUDGE)
        text = texts.get(row.doc_id)
        key = row.query_id, text, "" if text is not None else row.doc_id, row.item_id
        of_cell = voices.setdefault(key, {})
        voice = row.who, row.kind == ADJUDICATED
        replaced = [voice] if voice in of_cell else []
        if takes_back(row):
            opinions = {of for of, at in of_cell.items() if not takes_back(decisions[at].row)}
            own_voices = [of for of in (voice, (row.who, not voice[1])) if of in opinions]
            if own_voices and (row.kind or rule != "latest"):
                voice = own_voices[0]
                replaced = [voice]
            elif row.kind != UNDONE:
                replaced = list(of_cell)
        for of in replaced:
            at = of_cell.pop(of)
            decisions[at] = decisions[at]._replace(state=REPLACED)
        of_cell[voice] = line
    #: Of the lines that count by the rule "latest", the lines of others that say the same.
    agreed: dict[int, tuple[HumanRating, ...]] = {}
    for of_cell in voices.values():
        rows_of_cell = [decisions[line].row for line in sorted(of_cell.values())]
        for decision in _decided([decisions[line] for line in sorted(of_cell.values())], rule):
            if decision.state == COUNTS:
                row = decision.row
                if rule == "latest":
                    others = (each for each in rows_of_cell if each is not row)
                    agreed[decision.line] = tuple(each for each in others if each.rating == row.rating)
                pooled = row.doc_id in pool.get(row.query_id, ())
                state = RETIRED if _is_retired(row, bank) else COUNTS if pooled else NOT_POOLED
                decision = decision._replace(state=state)
            decisions[decision.line] = decision
    agreeing: dict[tuple[str, str, str], tuple[HumanRating, ...]] = {}
    for decision in decisions.values():
        row = decision.row
        if decision.state == COUNTS and row.rating is not None:
            for doc_id in _alike(row.doc_id, pool[row.query_id], texts):
                cell = row.query_id, doc_id, row.item_id
                if cited is None or cell in cited:
                    agreeing[cell] = (*agreeing.get(cell, ()), *agreed.get(decision.line, ()), row)
    queries = {query_id: QueryOverrides({}, {}) for query_id, *_ in sorted(agreeing)}
    for (query_id, doc_id, item_id), lines in agreeing.items():
        rating = lines[-1].rating
        assert rating is not None
        if item_id:
            queries[query_id].cells[doc_id, item_id] = rating
        else:
            queries[query_id].passages[doc_id] = rating
    return Overrides(queries, agreeing, tuple(decisions.values()), tuple(rejected))


def takes_back(row: HumanRating) -> bool:
    """Return True for a line that takes back what was said before."""
    return row.rating is None and not row.cannot


def _decided(lines: Sequence[Decision], rule: Rule) -> list[Decision]:
    """Return the last lines of all people on a cell, with what becomes of each by the rule."""
    rated = [decision for decision in lines if decision.row.rating is not None]
    deciding = [decision for decision in rated if decision.row.kind == ADJUDICATED]
    votes = Counter(decision.row.rating for decision in rated)
    if rule == "latest" or deciding:
        winners = (rated if rule == "latest" else deciding)[-1:]
    elif rule == "majority":
        ordered = sorted(rated, key=lambda decision: (-votes[decision.row.rating], decision.row.rating))
        winners = [decision for decision in rated if decision.row.rating == ordered[0].row.rating]
    else:
        winners = rated if len(votes) == 1 else []
    last = winners[-1].line if winners else 0
    loser = REPLACED if rule == "latest" else OVERRULED if winners else UNDECIDED
    return [
        decision._replace(state=COUNTS)
        if decision in winners
        else decision._replace(state=loser)
        if decision.row.rating is not None
        else decision._replace(state=REPLACED)
        if rule == "latest" and decision.line < last and takes_back(decision.row)
        else decision
        for decision in lines
    ]


def _refused(
    row: HumanRating,
    bank: Bank,
    texts: Mapping[str, str],
    max_rating: int,
    own_scale: JudgingScale | None,
) -> str | None:
    who, again = f"{row.who}'s rating of '{row.doc_id}'", "rate it again, or remove the line"
    best = max_rating if own_scale is None else own_scale.best
    source = "the grader's scale" if own_scale is None else own_scale.source
    items = (*bank.items.get(row.query_id, ()), *bank.retired.get(row.query_id, ()))
    item = next((item for item in items if item.item_id == row.item_id), None)
    text = texts.get(row.doc_id)
    if row.query_id not in bank.items and row.query_id not in bank.retired:
        return f"{who} is for query '{row.query_id}', which the bank does not have"
    if row.scale and row.scale != f"0..{best}":
        return f"{who} was given on the scale {row.scale}, and {source} is 0..{best}; judge it again"
    if row.rating is not None and row.rating > best:
        return f"{who} is {row.rating}, and {source} is 0..{best}"
    if row.item_id and own_scale is not None:
        return f"{who} is on item '{row.item_id}'; judgments are of whole passages: put it into overrides.tsv"
    if row.item_id and item is None:
        return f"{who} is on item '{row.item_id}', which query '{row.query_id}' does not have"
    if item is not None and row.item_sha256 and row.item_sha256 != digest_of(item):
        return f"{who} was given on another wording of item '{row.item_id}'; {again}"
    if row.passage_sha256 and text is not None and row.passage_sha256 != passage_digest(text).hex():
        return f"{who} was given on another text of this passage; {again}"
    return None


def _is_retired(row: HumanRating, bank: Bank) -> bool:
    if not row.item_id:
        return row.query_id not in bank.items
    return any(item.item_id == row.item_id for item in bank.retired.get(row.query_id, ()))


def digest_of(item: Item) -> str:
    """Return sha256 (hex) of an item as a person sees it: without the query's text."""
    return item_digest(item._replace(query_text="")).hex()


def _alike(doc_id: str, pooled: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """Return the pooled passages with the same text, this one among them."""
    text = texts.get(doc_id)
    return [other for other in pooled if other == doc_id or (text is not None and texts.get(other) == text)]
