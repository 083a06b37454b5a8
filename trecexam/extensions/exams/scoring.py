"""`trecexam exam score`: a model taking an exam with retrievers and in-context examples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from converters.passages import read_passages
from converters.run import Run
from converters.trec_run import read_run
from converters.unpacking import without_ending
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.choosing import ChoosingWriter
from trecexam.extensions.exams.exam_file import ExamQuestion
from trecexam.extensions.exams.questions.asking import ContextKind, candidates, examples_for, prompt
from trecexam.extensions.exams.questions.reading import read_choice
from trecexam.extensions.local_models.truncation import NoRoomError
from trecexam.graders.writing.asking import AskingResult, Job, KeepingWriter, Kept, PromptSet
from trecexam.graders.writing.base import Fitted
from trecexam.results.text import LOST, Note, plural

CLOSED_BOOK, ORACLE = "closed-book", "oracle"
#: Number of a run's documents in a prompt.
_DOCUMENTS = 3
#: Seed for drawing in-context examples.
_SEED = 0


@dataclass(frozen=True)
class Retriever:
    """The source of an examinee's documents.

    Attributes:
        run: None for closed-book and oracle.
    """

    name: str
    run: Run | None = None

    @property
    def kind(self) -> ContextKind:
        return "oracle" if self.run is None else "retrieved"

    def context(self, question: ExamQuestion, texts: Mapping[str, str]) -> str:
        """Return the context that the examinee reads; "" if it reads nothing."""
        if self.run is not None:
            ranking = self.run.ranking(question.question_id, _DOCUMENTS)
            return "\n".join(texts[doc_id] for doc_id in ranking if doc_id in texts)
        return question.documentation if self.name == ORACLE else ""


@dataclass(frozen=True)
class ExamSetup:
    """Settings of a model that takes an exam.

    Attributes:
        model: name of the model, a component of the examinee.
        examples: number of in-context examples per question.
        texts: doc_id -> text in the prompt.
    """

    model: str
    questions: Sequence[ExamQuestion]
    retriever: Retriever
    examples: int
    texts: Mapping[str, str]

    @property
    def components(self) -> dict[str, str]:
        """The components of the examinee."""
        return {"model": self.model, "retriever": self.retriever.name, "examples": str(self.examples)}

    def notes(self) -> list[str]:
        """Return notes on documents without a text, one per line."""
        if self.retriever.run is None:
            return []
        notes = []
        rankings = [self.retriever.run.ranking(each.question_id, _DOCUMENTS) for each in self.questions]
        without = sum(doc_id not in self.texts for ranking in rankings for doc_id in ranking)
        empty = sum(not ranking for ranking in rankings)
        if without:
            notes.append(f"left out, as without a text: {plural(without, 'retrieved document')}")
        if empty:
            notes.append(f"answered closed-book, as not in the run: {plural(empty, 'question')}")
        return notes


@dataclass(frozen=True)
class Examinee:
    """A model with a retriever and a number of in-context examples, and its answers.

    Attributes:
        answers: question_id -> the index of the chosen candidate, None if the answer could not be read; a
            question that was not answered is not in it.
        notes: notes on the result, one per line.
        why: reason for an early end, or "".
    """

    components: Mapping[str, str]
    answers: Mapping[str, int | None]
    notes: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        """The joined components."""
        return "+".join(self.components.values())

    def responses(self, questions: Sequence[ExamQuestion]) -> list[int | None]:
        """Return 1 right, 0 wrong or unreadable, None not answered, in the order of the questions."""
        return [
            int(self.answers[each.question_id] == each.correct) if each.question_id in self.answers else None
            for each in questions
        ]


def retrievers(named: Sequence[str]) -> list[Retriever]:
    """Return the retrievers: closed-book, oracle, or run files, named by tag (by file if tags repeat)."""
    runs = {name: read_run(name) for name in named if name not in (CLOSED_BOOK, ORACLE)}
    tags = [run.name for run in runs.values()]
    named_so: dict[str, Retriever] = {}
    for name in dict.fromkeys(named):
        run = runs.get(name)
        display_name = name if run is None else _tag(run.name, tags, Path(name))
        if display_name in named_so:
            raise TrecexamError(f"two retrievers are called '{display_name}': rename a file", path=name)
        named_so[display_name] = Retriever(display_name, run)
    return list(named_so.values())


def _tag(tag: str, tags: Sequence[str], path: Path) -> str:
    alone = tags.count(tag) == 1 and tag not in (CLOSED_BOOK, ORACLE)
    return tag if alone else without_ending(path.name).removesuffix(".run")


def texts_of(
    passages: Path | None, retrievers: Sequence[Retriever], questions: Sequence[ExamQuestion]
) -> dict[str, str]:
    """Return the texts that retrievers show: the corpus, else the exam's passages.

    Returns:
        doc_id -> text.
    """
    texts = {each.doc_id: each.documentation for each in questions}
    ranked = {
        retriever.name: {
            doc_id for each in questions for doc_id in retriever.run.ranking(each.question_id, _DOCUMENTS)
        }
        for retriever in retrievers
        if retriever.run is not None
    }
    if passages is not None:
        retrieved_ids = set().union(*ranked.values())
        texts |= {each.doc_id: each.text for each in read_passages(passages) if each.doc_id in retrieved_ids}
    for name, doc_ids in ranked.items():
        if not doc_ids:
            raise TrecexamError(
                f"run '{name}' has no results for the exam's questions: its query ids must be question ids"
            )
        if doc_ids.isdisjoint(texts):
            raise TrecexamError(
                f"none of the documents of run '{name}' has a text: give the corpus with --passages"
            )
    return texts


def exam_prompts(source: KeepingWriter, setup: ExamSetup) -> PromptSet[str]:
    """Return the prompts by question_id: a local model chooses a continuation, a server writes a letter."""
    writer = source.writer
    kind, examples = setup.retriever.kind, examples_for(setup.questions, setup.examples, _SEED)

    def render(question: ExamQuestion, context: str) -> str:
        return prompt(question, context, kind, examples(question), writer.plain)

    prompt_texts: dict[str, Fitted] = {}
    for question in setup.questions:
        context = setup.retriever.context(question, setup.texts)
        if not isinstance(writer, ChoosingWriter):
            prompt_texts[question.question_id] = Fitted(render(question, context), cut=False)
            continue
        among = candidates(question, writer.plain)
        try:
            prompt_texts[question.question_id] = writer.fit_prompt(partial(render, question), context, among)
        except NoRoomError as lengths:
            raise TrecexamError(
                f"question '{question.question_id}' with its {setup.examples:,} examples has {lengths}: use "
                f"fewer --examples, or leave out this question"
            ) from None
    return PromptSet.of_fitted(source, prompt_texts)


def taking_job(source: KeepingWriter, setup: ExamSetup) -> Job[Examinee]:
    """Return the job of a model that takes the exam.

    A local model chooses the candidate "A) text" with the highest log-likelihood divided by its length
    in characters, as the published evaluation does (Gao et al., lm-evaluation-harness, `acc_norm`). Texts of
    other models are read as a letter.
    """
    prompts = exam_prompts(source, setup)
    return Job([prompts], partial(_take, prompts, setup))


def _take(prompts: PromptSet[str], setup: ExamSetup, result: AskingResult[str]) -> Examinee:
    questions = {question.question_id: question for question in setup.questions}
    read = _likeliest if isinstance(prompts.source.writer, ChoosingWriter) else _named
    answered = {question_id: read(questions[question_id], reply) for question_id, reply in prompts.answered()}
    unread = sum(chosen is None for chosen in answered.values())
    notes = [f"documents cut to fit the model: {plural(len(prompts.cut), 'question')}"] if prompts.cut else []
    if unread:
        notes.append(f"no candidate named, counted as wrong: {plural(unread, 'answer')}")
    if result.unwritten:
        _, reason = result.unwritten[0]
        line = f"{plural(len(result.unwritten), 'question')} without an answer: {reason}"
        notes.append(Note(line, LOST))
    return Examinee(setup.components, answered, (*notes, *setup.notes()), result.why)


def _likeliest(question: ExamQuestion, reply: Kept) -> int:
    """Return the index of the candidate with the highest log-probability per character."""
    log_probabilities = zip(json.loads(reply.text), candidates(question), strict=True)
    scores = [value / len(each) for value, each in log_probabilities]
    return scores.index(max(scores))


def _named(question: ExamQuestion, reply: Kept) -> int | None:
    return read_choice(reply.text, question.choices, cut=reply.cut)
