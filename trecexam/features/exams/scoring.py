"""`trecexam exam score`: models take an exam, each with a retriever and some examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from converters.exam import LETTERS, ExamQuestion, read_exam
from converters.passages import read_passages
from converters.run import Run
from converters.trec_run import read_run
from trecexam.errors import TrecexamError
from trecexam.features.exams.questions.asking import ContextKind, candidates, examples_for, prompt
from trecexam.features.exams.questions.reading import read_choice
from trecexam.graders.causal import CausalBackend
from trecexam.graders.language.truncation import NoRoomError, fitted
from trecexam.graders.writing import Writer
from trecexam.graders.writing.asking import ask_all
from trecexam.graders.writing.kept_answers import KeptAnswers

CLOSED_BOOK, ORACLE = "closed-book", "oracle"
How = Literal["likelihood", "letter"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Retriever:
    """Where an examinee's documents come from.

    Attributes:
        run: None for closed-book and oracle.
        documents: how many of the first are shown.
    """

    name: str
    run: Run | None = None
    documents: int = 3

    @property
    def kind(self) -> ContextKind:
        return "oracle" if self.run is None else "retrieved"

    def context(self, question: ExamQuestion, texts: Mapping[str, str]) -> str:
        """What the examinee reads; "" where it reads nothing."""
        if self.run is not None:
            found = self.run.ranking(question.question_id, self.documents)
            return "\n".join(texts[doc_id] for doc_id in found if doc_id in texts)
        return question.documentation if self.name == ORACLE else ""


@dataclass(frozen=True)
class Answered:
    """An examinee's answer: the place it chose, None where none could be read; and what that rests on."""

    chosen: int | None
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Examinee:
    """A model with a retriever and a number of in-context examples, and what it answered.

    Attributes:
        answers: question_id -> answer; a question that was not answered is not in it.
        notes: what one must know of it, a line each.
        why: why it ended early, "" where it did not.
    """

    components: Mapping[str, str]
    answers: Mapping[str, Answered]
    notes: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        """Its components, joined."""
        return "+".join(self.components.values())

    def responses(self, questions: Sequence[ExamQuestion]) -> dict[str, int | None]:
        """1 right, 0 wrong or not to be read, None not answered."""
        return {
            each.question_id: int(self.answers[each.question_id].chosen == each.correct)
            if each.question_id in self.answers
            else None
            for each in questions
        }


def retrievers(named: Sequence[str], documents: int) -> list[Retriever]:
    """closed-book, oracle, or run files, which are named by their tags, or where these are not alone by file.

    Raises:
        ConversionError: a run cannot be read.
        TrecexamError: two would have the same name.
    """
    runs = {name: read_run(name) for name in named if name not in (CLOSED_BOOK, ORACLE)}
    tags = [run.name for run in runs.values()]
    found: list[Retriever] = []
    for name in dict.fromkeys(named):
        run = runs.get(name)
        shown = name if run is None else _tag(run.name, tags, Path(name))
        if any(one.name == shown for one in found):
            raise TrecexamError(f"two retrievers are called '{shown}': rename a file", path=name)
        found.append(Retriever(shown, run, documents))
    return found


def _tag(tag: str, tags: Sequence[str], path: Path) -> str:
    alone = tags.count(tag) == 1 and tag not in (CLOSED_BOOK, ORACLE)
    return tag if alone else path.name.removesuffix(".gz").removesuffix(".run")


def read_questions(path: Path) -> tuple[ExamQuestion, ...]:
    """The exam's questions.

    Raises:
        ConversionError: a line is no question.
    """
    return tuple(read_exam(path))


def texts_of(
    passages: Path | None, found: Sequence[Retriever], questions: Sequence[ExamQuestion]
) -> dict[str, str]:
    """The texts that the retrievers show: those of the corpus, else the exam's own passages.

    Raises:
        ConversionError: the passages cannot be read.
        TrecexamError: a run shares no question with the exam, or none of its documents has a text.
    """
    texts = {each.doc_id: each.documentation for each in questions}
    wanted = {
        doc_id
        for one in found
        if one.run is not None
        for each in questions
        for doc_id in one.run.ranking(each.question_id, one.documents)
    }
    if passages is not None:
        texts |= {each.doc_id: each.text for each in read_passages(passages) if each.doc_id in wanted}
    for one in found:
        if one.run is None:
            continue
        ranked = [d for each in questions for d in one.run.ranking(each.question_id, one.documents)]
        if not ranked:
            raise TrecexamError(
                f"run '{one.name}' ranks nothing for the exam's questions: its query ids must be question ids"
            )
        if not any(doc_id in texts for doc_id in ranked):
            raise TrecexamError(
                f"none of the documents of run '{one.name}' has a text: give the corpus with --passages"
            )
    return texts


def by_model(
    backend: CausalBackend,
    model: str,
    questions: Sequence[ExamQuestion],
    retriever: Retriever,
    examples: int,
    texts: Mapping[str, str],
    *,
    how: How = "likelihood",
    seed: int = 0,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Examinee:
    """A model in this process takes the exam.

    It chooses the candidate "A) text" with the highest log-likelihood divided by its length in characters, as
    the published evaluation does (Gao et al., lm-evaluation-harness, `acc_norm`); or, by letter, the most
    probable of the four letters.

    Raises:
        GraderError: the model cannot be run.
        TrecexamError: a prompt without its documents does not fit, or probabilities are not finite.
    """
    from trecexam.graders.continuations import Asked, scored, tokens_of

    chosen = _examples(questions, examples, seed)
    plain = backend.plain
    asked, cut = [], 0
    for question in questions:
        shown = candidates(question, plain) if how == "likelihood" else tuple(LETTERS)
        continuations = tokens_of(backend, shown)
        limit = backend.length_limit(max(map(len, continuations)))
        context = retriever.context(question, texts)
        before = chosen(question)

        def render(part: str, question: ExamQuestion = question, before: Any = before) -> str:
            return prompt(question, part, retriever.kind, before, plain)

        try:
            tokens, part = fitted(render, context, backend, limit)
        except NoRoomError:
            tokens, part = backend.encode([render("")])[0], ""
            if len(tokens) > limit:
                raise TrecexamError(
                    f"question '{question.question_id}' has {len(tokens):,} tokens with its {examples:,} "
                    f"examples, and the model takes {limit:,}: ask with fewer --examples, or leave long "
                    "questions out (`exam filter --max-question`)"
                ) from None
        cut += part != context
        asked.append(Asked(tokens, continuations))
    lengths = [
        [len(text) if how == "likelihood" else 1 for text in candidates(question)] for question in questions
    ]
    answers: dict[int, Answered] = {}
    if progress:
        progress(0, len(asked))
    for batch in scored(backend, asked):
        for place, found in batch:
            scores = [one.log_probability / length for one, length in zip(found, lengths[place], strict=True)]
            if not all(map(math.isfinite, scores)):
                raise TrecexamError(
                    f"the model gives question '{questions[place].question_id}' no finite probabilities: "
                    "set another --dtype or --device"
                )
            answers[place] = Answered(scores.index(max(scores)), {"scores": scores})
        if progress:
            progress(len(answers), len(asked))
        if stop is not None and stop():
            break
    notes = [f"documents of {cut:,} questions were cut to fit the model"] if cut else []
    notes += _unread_documents(retriever, questions, texts)
    return Examinee(
        _components(model, retriever, examples),
        {questions[place].question_id: answers[place] for place in sorted(answers)},
        tuple(notes),
        "stopped" if len(answers) < len(questions) else "",
    )


def by_writer(
    writer: Writer,
    model: str,
    questions: Sequence[ExamQuestion],
    retriever: Retriever,
    examples: int,
    texts: Mapping[str, str],
    answers: KeptAnswers,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Examinee:
    """A model that writes, such as one behind a server, takes the exam; its answers are read as letters.

    Answers are kept as they come, so that none is asked for twice.

    Raises:
        GraderError: the model cannot be asked at all.
    """
    chosen = _examples(questions, examples, seed)
    prompts = {
        question.question_id: prompt(
            question, retriever.context(question, texts), retriever.kind, chosen(question), writer.plain
        )
        for question in questions
    }
    asked = ask_all(writer, prompts.values(), answers, progress, stop)
    found = {}
    for question in questions:
        kept = answers.get(prompts[question.question_id])
        if kept is not None:
            place = read_choice(kept.text, question.choices)
            found[question.question_id] = Answered(place, {"raw": kept.text})
    unread = sum(answer.chosen is None for answer in found.values())
    notes = [f"{unread:,} answers name no candidate, and count as wrong"] if unread else []
    if asked.unwritten:
        reason = next(iter(asked.unwritten.values()))
        notes.append(f"{len(asked.unwritten):,} questions have no answer: the model {reason}")
    notes += _unread_documents(retriever, questions, texts)
    return Examinee(_components(model, retriever, examples), found, tuple(notes), asked.why)


def _components(model: str, retriever: Retriever, examples: int) -> dict[str, str]:
    return {"model": model, "retriever": retriever.name, "examples": str(examples)}


def _examples(
    questions: Sequence[ExamQuestion], number: int, seed: int
) -> Callable[[ExamQuestion], tuple[ExamQuestion, ...]]:
    try:
        return examples_for(questions, number, seed)
    except ValueError as error:
        raise TrecexamError(str(error)) from None


def _unread_documents(
    retriever: Retriever, questions: Sequence[ExamQuestion], texts: Mapping[str, str]
) -> list[str]:
    if retriever.run is None:
        return []
    found = []
    rankings = [retriever.run.ranking(each.question_id, retriever.documents) for each in questions]
    without = sum(doc_id not in texts for ranking in rankings for doc_id in ranking)
    empty = sum(not ranking for ranking in rankings)
    if without:
        found.append(f"{without:,} retrieved documents have no text and were left out")
    if empty:
        found.append(f"{empty:,} questions are not in the run and were asked closed-book")
    return found
