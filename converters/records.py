"""Immutable records that readers return and writers accept.

They are named tuples: hashable, cheap by the million, and those that `ir_measures` knows
(`Qrel`, and the first fields of `RunEntry`) can be handed to it as they are.
"""

from __future__ import annotations

from typing import NamedTuple


class Query(NamedTuple):
    """A query (TREC: topic)."""

    query_id: str
    text: str


class Passage(NamedTuple):
    """A retrievable text with its document id."""

    doc_id: str
    text: str


class RunEntry(NamedTuple):
    """A line of a run, in trec_eval's order.

    `rank` counts from 1 in that order; the rank column of a file is ignored, as trec_eval does.
    `run` is the run tag.
    """

    query_id: str
    doc_id: str
    rank: int
    score: float
    run: str


class Qrel(NamedTuple):
    """A judgment; the fields and their order are those of `ir_measures.Qrel`.

    `iteration` is the second column of a qrels file: unused in plain qrels, the subtopic (here: the
    index of a bank item) in diversity qrels.
    """

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


#: The label of a passage that is in the pool and that nobody judged.
NOT_JUDGED = -1


def judgment(label: int) -> int | None:
    """Return the judgment that a label of qrels stands for, 0 where the passage is not relevant.

    `NOT_JUDGED` is no judgment: None. Labels below are (junk, spam): not relevant.
    """
    return None if label == NOT_JUDGED else max(label, 0)


class Origin(NamedTuple):
    """The origin of a generated item.

    `prompt` and `model` are names, `seed` is None where none was set, `time` is ISO 8601 in UTC. `text` is
    the item's text as it was generated, and `importance` what it was called then ("" where nothing): an item
    that is otherwise was edited by a person.
    """

    prompt: str
    model: str
    seed: int | None
    time: str
    text: str
    importance: str = ""

    @property
    def row(self) -> dict[str, str | int | None]:
        """Return the fields in files; importance only if present."""
        return {key: value for key, value in self._asdict().items() if key != "importance" or value}


class Item(NamedTuple):
    """An entry of a test bank: an exam question, a nugget (key fact), or a query's gold outputs.

    `kind` is "question", "nugget" or "gold". `gold_answers` is the answer key, empty where the bank has none.
    `choices` are the candidates of a multiple-choice question as (letter, text) pairs. `query_text` is
    set by trecexam where the grader is told the query as well; files have none. `importance` is "vital" or
    "okay" as TREC's assessors say it of nuggets, "" where nobody did; no grader is told it. A `retired`
    item is no longer asked about; its grades are kept. `origin` is None where a person wrote the item.
    `weight` is how much it counts, not 0, and negative where it counts against; None where the bank does not
    say. No grader is told it. `details` is what else its nugget bank says of it and of the topic, as JSON, ""
    for nothing: see `converters.nugget_banks`.
    """

    query_id: str
    item_id: str
    text: str
    kind: str = "question"
    gold_answers: tuple[str, ...] = ()
    facet_id: str | None = None
    choices: tuple[tuple[str, str], ...] = ()
    query_text: str = ""
    importance: str = ""
    retired: bool = False
    origin: Origin | None = None
    weight: float | None = None
    details: str = ""

    @property
    def counted_weight(self) -> float:
        """Return the weight; 1 if the bank gives none."""
        return 1.0 if self.weight is None else self.weight


class Citation(NamedTuple):
    """A document that a sentence cites; `confidence` is None if the system gives none."""

    doc_id: str
    confidence: float | None = None


class Sentence(NamedTuple):
    """A sentence of a response with its citations, as segmented by the system.

    `out_of_range` counts citations by a place at which the response has no reference.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    out_of_range: int = 0


class Response(NamedTuple):
    """A generative system's answer to one query.

    `run` is the system's run id. `query_id` is "" where only the query's text is known. `references` are
    the documents the system was given or names, in its order. `over` says which limit of its track it is
    over; "" for none. `documents` are texts that come with it, of what it cites. `metadata` are the fields of
    its metadata that are texts or numbers, in their order; ids are among them.
    """

    query_id: str
    run: str
    sentences: tuple[Sentence, ...]
    query_text: str = ""
    references: tuple[str, ...] = ()
    over: str = ""
    documents: tuple[Passage, ...] = ()
    metadata: tuple[tuple[str, str | float | bool], ...] = ()

    @property
    def text(self) -> str:
        """The whole answer, its parts separated by a blank."""
        return " ".join(sentence.text.strip() for sentence in self.sentences if sentence.text.strip())

    @property
    def n_words(self) -> int:
        """The number of words separated by white space."""
        return sum(len(sentence.text.split()) for sentence in self.sentences)

    def truncated(self, words: int) -> Response:
        """The response cut after this many words, within a sentence if necessary."""
        sentences: list[Sentence] = []
        for sentence in self.sentences:
            split = sentence.text.split()
            if len(split) > words:
                if words:
                    sentences.append(sentence._replace(text=" ".join(split[:words])))
                break
            sentences.append(sentence)
            words -= len(split)
        return self._replace(sentences=tuple(sentences))


class RunRank(NamedTuple):
    """A run's place on an official leaderboard; 1 is best."""

    run: str
    rank: float


class MeasureValue(NamedTuple):
    """A measure's value for a run and query; the query "all" has the mean."""

    run: str
    query_id: str
    measure: str
    value: float


class HumanRating(NamedTuple):
    """A rating that a person gave in place of a grader's.

    `rating` is 0..5, or None where the person withdraws an earlier one. `item_id` is "" where the passage
    as a whole was rated, for the query itself. The digests are those of the texts that the person saw
    (hex), or "" where nobody noted them; `when` is ISO 8601, or "". `seconds` are those of work on the
    judgment, None where nobody measured them. `kind` is "" but where the line decides between people
    ("adjudicated") or brings back what its writer said before ("undone"). `cannot`: the person says that the
    cell cannot be judged, and there is no rating. `scale` is that of a judgment of a whole passage, as
    "0..3"; "" on the grader's scale, or where nobody noted the scale.
    """

    query_id: str
    doc_id: str
    item_id: str = ""
    rating: int | None = None
    who: str = ""
    why: str = ""
    when: str = ""
    passage_sha256: str = ""
    item_sha256: str = ""
    seconds: float | None = None
    note: str = ""
    kind: str = ""
    cannot: bool = False
    scale: str = ""


class TextJudgment(NamedTuple):
    """A label 0..3 of a passage for a query, both given by text; ids are "" if missing.

    `label` is None where the judge's `answer` had none.
    """

    query: str
    passage: str
    label: int | None
    answer: str
    model: str = ""
    query_id: str = ""
    doc_id: str = ""


class RecordedGrade(NamedTuple):
    """A grade read from a file.

    `rating` is 0..5, or None where the recording has an answer but no rating. `text` is the passage's
    text as the recording has it ("" if missing). `model` and `prompt` tell apart the several
    gradings that one file can hold. `probabilities` are six numbers, of the ratings 0..5, which nobody
    checked, or None.
    """

    query_id: str
    doc_id: str
    item_id: str
    rating: int | None
    answer: str
    model: str
    prompt: str
    text: str
    probabilities: tuple[float, ...] | None = None
