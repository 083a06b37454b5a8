"""A grader that asks a language model: prompts out, batches through, answers read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell
from trecexam.graders.batching import FIRST_WINDOW, Batcher, OutOfMemoryError
from trecexam.graders.language.backend import Backend, Job, ModelOutput
from trecexam.graders.language.truncation import NoRoomError, fitted
from trecexam.graders.prompts import DEFAULT, Prompt, named
from trecexam.graders.prompts.prompted import PromptedGrader, with_verdict
from trecexam.graders.weights import LANGUAGE_FILES, config_digest, weights_digest

#: Ratings that a stored distribution has a place for.
RATINGS = 6


@dataclass(frozen=True)
class Decoding:
    """How answers come out of the model.

    Attributes:
        mode: "choices" (the most probable of the permitted answers) or "beam" (beam search, free text).
        beams: beams of the search.
        new_tokens: tokens that an answer may have in beam search.
    """

    mode: str = "choices"
    beams: int = 5
    new_tokens: int = 512

    def identity(self, prompts: Iterable[Prompt]) -> dict[str, Any]:
        """What of it can change an answer; in `choices` the permitted ones are a part of it."""
        if self.mode == "choices":
            return {"mode": "choices", "answers": [prompt.answers for prompt in prompts]}
        return {"mode": "beam", "beams": self.beams, "new_tokens": self.new_tokens, "early_stopping": True}


@dataclass(frozen=True)
class _Unable:
    """A cell that cannot be asked about, and why."""

    cell: Cell
    reason: str


class LanguageGrader(PromptedGrader):
    """Grades by asking a model.

    Args, beside those of `PromptedGrader`:
        model: the model's name, for the identity and exports.
        folder: where its files are.
        max_length: tokens of a prompt; None for what the model takes.
        max_batch_tokens: tokens of a batch, padding counted; None for what suits the device.
    """

    def __init__(
        self,
        backend: Backend,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        model: str,
        folder: Path,
        *,
        max_length: int | None = None,
        max_batch_tokens: int | None = None,
        compat: str | None = None,
        memory: Path | None = None,
    ) -> None:
        super().__init__(prompts, compat)
        self.backend = backend
        self.decoding = decoding
        self.model = model
        self.folder = folder
        self._asked_length = max_length
        self._asked_budget = max_batch_tokens
        self._memory = memory
        self._answers = prompts[0].answers

    @property
    def free_text(self) -> bool:
        """Whether answers are the model's own words, to be read."""
        return self.decoding.mode == "beam"

    @property
    def cells_share(self) -> Literal["nothing", "prompts"]:
        """Whether a model reads what the prompts of a passage begin with once."""
        return "prompts" if self.backend.name == "causal" else "nothing"

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        prompts = [self.prompts[kind] for kind in sorted(self.prompts)]
        return {
            "grader": self.backend.name,
            "model": self.model,
            "weights_sha256": weights_digest(self.folder, self._memory),
            "config_sha256": config_digest(self.folder, LANGUAGE_FILES),
            "prompts": [prompt.identity() for prompt in prompts],
            "decode": self.decoding.identity(prompts),
            "max_length": self.max_length,
            "truncation": "end of passage, at a token",
        }

    @cached_property
    def max_length(self) -> int:
        """Tokens that a prompt may have."""
        limit = self.backend.length_limit(self.decoding.new_tokens if self.decoding.mode == "beam" else 16)
        return limit if self._asked_length is None else min(limit, self._asked_length)

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in self._answered(cells):
            yield [*self._verified(batch)] if self._verifiers else batch

    @cached_property
    def _verifiers(self) -> Mapping[str, LanguageGrader]:
        """By kind of item, what asks the same model whether the answers to its prompt are right."""
        return {
            kind: LanguageGrader(
                self.backend,
                [prompt.verification],
                self.decoding,
                self.model,
                self.folder,
                max_length=self._asked_length,
                max_batch_tokens=self._asked_budget,
            )
            for kind, prompt in self.prompts.items()
            if prompt.verification is not None
        }

    def _verified(self, batch: Sequence[tuple[Cell, Answer]]) -> Iterator[tuple[Cell, Answer]]:
        """A batch's answers with what the model says of them; equal ones to an item are asked about once."""
        asked: dict[Cell, list[tuple[Cell, str]]] = {}
        for cell, answer in batch:
            if cell.item.kind not in self._verifiers or answer.status not in {"ok", "unparsed"}:
                yield cell, answer
                continue
            given = answer.raw.strip()
            asked.setdefault(cell._replace(doc_id="", text=given), []).append((cell, given))
        for kind, verifier in self._verifiers.items():
            for verdicts in verifier.grade(each for each in asked if each.item.kind == kind):
                for verification, verdict in verdicts:
                    for cell, given in asked[verification]:
                        failed = verdict.status == "error"
                        raw = verdict.raw if failed else with_verdict(given, verdict.raw)
                        yield cell, verdict._replace(raw=raw)

    def _answered(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        unable: list[_Unable] = []
        batcher: Batcher[Cell, Job, ModelOutput] = Batcher(
            lambda window: self._prepare(window, unable),
            self._launch,
            self._asked_budget or self.backend.budget(),
        )
        # So many that a batch has prompts of like length to choose from, and what is useful is not put off.
        window = max(FIRST_WINDOW, batcher.max_tokens // 4)
        try:
            for batch in batcher.run(cells, later=window):
                yield [(job.cell, self._answer(job, output)) for job, output in batch] + _unable_answers(
                    unable
                )
        except OutOfMemoryError as error:
            raise GraderError(
                f"{error} into the memory of the device: set a smaller `max_length` in [grader], "
                "or another `device`"
            ) from error
        rest = _unable_answers(unable)
        if rest:
            yield rest

    def _prepare(self, window: list[Cell], unable: list[_Unable]) -> list[Job]:
        """The window's prompts as tokens; what cannot be asked goes to `unable`."""
        askable, texts = [], []
        for cell in window:
            prompt = self.prompts[cell.item.kind]
            if prompt.needs_key and not cell.item.gold_answers:
                unable.append(_Unable(cell, f"has no answer key, which prompt {prompt.name} needs"))
                continue
            askable.append((cell, prompt))
            texts.append(self._text(prompt, cell, cell.text[: self._enough]))
        groups: dict[str, int] = {}
        jobs = []
        for (cell, prompt), tokens in zip(askable, self.backend.encode(texts), strict=True):
            if len(tokens) > self.max_length or len(cell.text) > self._enough:
                try:
                    tokens = self._cut(prompt, cell)
                except NoRoomError:
                    room = f"leaves no room for a passage in the {self.max_length} tokens of a prompt"
                    unable.append(_Unable(cell, f"{room}: shorten it"))
                    continue
            jobs.append(Job(cell, prompt, tokens, groups.setdefault(cell.text, len(groups))))
        return jobs

    @property
    def _enough(self) -> int:
        """Characters that are more than a prompt can take, but for odd texts."""
        return 16 * self.max_length

    def _text(self, prompt: Prompt, cell: Cell, passage: str) -> str:
        return self._filled(prompt, cell, passage, self.backend.plain)

    def _cut(self, prompt: Prompt, cell: Cell) -> list[int]:
        characters = self._enough
        while True:
            # A passage of megabytes is not tokenised for the sake of its first page.
            passage = self.backend.plain(cell.text[:characters])
            tokens, part = fitted(
                lambda part: self._text(prompt, cell, part), passage, self.backend, self.max_length
            )
            if len(part) < len(passage) or characters >= len(cell.text):
                return tokens
            characters *= 4

    def _launch(self, jobs: Sequence[Job]) -> Callable[[], Sequence[ModelOutput]]:
        if self.decoding.mode == "beam":
            texts = self.backend.generate(jobs, self.decoding.beams, self.decoding.new_tokens)
            return lambda: [ModelOutput(text) for text in texts()]
        answers = [answer for answer, _ in self._answers]
        scores = self.backend.score(jobs, answers)
        return lambda: [self._best(row) for row in scores()]

    def _best(self, scores: Sequence[float]) -> ModelOutput:
        """The most probable answer (the first of equals) and each answer's share."""
        if any(math.isnan(score) for score in scores):
            raise GraderError(
                "the model gives no numbers (NaN): its weights are damaged, or do not bear this `dtype`",
                path=self.folder,
            )
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        total = sum(shares)
        return ModelOutput(self._answers[scores.index(top)][0], tuple(share / total for share in shares))

    def _answer(self, job: Job, output: ModelOutput) -> Answer:
        if output.probabilities is None:
            reading = job.prompt.read(output.text, job.cell.item)
            return Answer(reading.rating, reading.status, output.text)
        shares = [0.0] * RATINGS
        for (_, rating), share in zip(job.prompt.answers, output.probabilities, strict=True):
            shares[rating] += share
        rating = dict(job.prompt.answers)[output.text]
        return Answer(rating, "ok", output.text, tuple(round(share, 6) for share in shares))


def _unable_answers(unable: list[_Unable]) -> list[tuple[Cell, Answer]]:
    """What `unable` holds now, as answers; it is empty afterwards. Another thread may add meanwhile."""
    answers = []
    while unable:
        cell_error = unable.pop(0)
        answers.append((cell_error.cell, Answer(None, "error", cell_error.reason)))
    return answers


def chosen_prompts(settings: GraderSection, root: Path, *, passage_first: bool) -> list[Prompt]:
    """The prompts that the settings name, or the paper's self-ratings."""
    names = DEFAULT if settings.prompt is None else (settings.prompt,)
    prompts = [named(name, root) for name in names]
    return [prompt.passage_first() for prompt in prompts] if passage_first else prompts


def chosen_decoding(settings: GraderSection, prompts: Sequence[Prompt]) -> Decoding:
    """How to decode: as set, else `choices` where the prompt has permitted answers, else `beam`.

    Raises:
        GraderError: `choices` is set for a prompt that wants free text.
    """
    free = [prompt.name for prompt in prompts if not prompt.answers]
    if settings.decode == "choices" and free:
        raise GraderError(f'prompt {free[0]} wants free text: set `decode = "beam"` in [grader]')
    mode = settings.decode or ("beam" if free else "choices")
    return Decoding(mode, settings.beams, settings.max_new_tokens)
