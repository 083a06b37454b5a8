"""A grader with a local language model: makes prompts, runs batches and reads answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job, ModelOutput
from trecexam.extensions.local_models.batching import Batcher
from trecexam.extensions.local_models.lists import LabelLists, ListTokens
from trecexam.extensions.local_models.local import LocalModel
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.graders.base import Answer, Cell, Factory
from trecexam.graders.prompts import Prompt, PromptedGrader, chosen_prompts, prompted_reading, with_verdict
from trecexam.graders.replies import cut_at, read_reply, unwrapped
from trecexam.graders.weights import config_digest, model_folder, weights_digest

#: Cells of one prompt.
Call = tuple[Cell, ...]

#: Number of ratings in a stored distribution.
RATINGS = 6
#: Digits of log-probabilities, in nats, for comparing answers.
DIGITS = 4
#: Minimum length, in tokens, of a common prefix to read once.
LEAST_SHARED = 16


@dataclass(frozen=True)
class Decoding:
    """Settings for decoding answers.

    Attributes:
        mode: "choices" (the most probable of the permitted answers) or "beam" (beam search, free text).
        new_tokens: maximum tokens of an answer in beam search.
    """

    mode: str
    beams: int
    new_tokens: int

    def identity(self, prompts: Iterable[Prompt]) -> dict[str, Any]:
        """Return all settings that can change an answer."""
        if self.mode == "choices":
            return {"mode": "choices", "answers": [prompt.answers for prompt in prompts]}
        return {"mode": "beam", "beams": self.beams, "new_tokens": self.new_tokens, "early_stopping": True}


class LanguageGrader(PromptedGrader):
    """Grader with a local language model.

    Args:
        memory: file for digests of weights.
    """

    def __init__(
        self,
        backend: LocalModel,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        settings: GraderSection,
        memory: Path,
    ) -> None:
        super().__init__(prompts, settings.compat)
        self.backend = backend
        self.decoding = decoding
        self.free_text = decoding.mode == "beam"
        self.cells_share = "prompts" if backend.name == "causal" else "nothing"
        if self.asks_lists:
            self.cells_share = "answer"
        self._settings = settings
        self._memory = memory
        self._labels = [label for label, _ in prompts[0].answers]

    @cached_property
    def _list_tokens(self) -> ListTokens:
        return ListTokens.of(self._labels, self.backend.tokens.answers, self.backend.folder)

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment; None before it is loaded."""
        return self.backend.environment

    @property
    def model_to_load(self) -> str:
        """The model's name; empty once the model is loaded."""
        return str(self.identity["model"]) if self.environment is None else ""

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        prompts = [self.prompts[kind] for kind in sorted(self.prompts)]
        folder = self.backend.folder
        return {
            "grader": self.backend.name,
            "model": Path(self._settings.model or str(self.backend.default_model)).name,
            "weights_sha256": weights_digest(folder, self._memory),
            "config_sha256": config_digest(folder, loading.LANGUAGE_FILES),
            "prompts": [prompt.identity() for prompt in prompts],
            "decode": self.decoding.identity(prompts),
            "max_length": self.max_length,
            "truncation": "end of passage, at a token",
        }

    @cached_property
    def max_length(self) -> int:
        """The maximum length of a prompt, in tokens."""
        listed = 16 * max(prompt.group for prompt in self.prompts.values())
        limit = self.backend.length_limit(self.decoding.new_tokens if self.free_text else listed)
        return min(limit, self._settings.max_length or limit)

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in self._answered(cells):
            yield [*self._verified(batch)] if self._verifiers else batch

    @cached_property
    def _verifiers(self) -> Mapping[str, LanguageGrader]:
        """Graders with the same model that verify answers, by kind of item."""
        return {
            kind: self._asking([prompt.verification], self.decoding)
            for kind, prompt in self.prompts.items()
            if prompt.verification is not None
        }

    def _verified(self, batch: Sequence[tuple[Cell, Answer]]) -> Iterator[tuple[Cell, Answer]]:
        """Verify a batch's answers; equal answers to an item are verified once."""
        claims: dict[Cell, list[tuple[Cell, str]]] = {}
        for cell, answer in batch:
            unread = answer.status == "unparsed" and answer.cut_at is None
            if cell.item.kind not in self._verifiers or not (unread or answer.status == "ok"):
                yield cell, answer
                continue
            claim = unwrapped(read_reply(answer.raw).text)
            claims.setdefault(cell._replace(doc_id="", text=claim), []).append((cell, claim))
        for kind, verifier in self._verifiers.items():
            for verdicts in verifier.grade(each for each in claims if each.item.kind == kind):
                for verification, verdict in verdicts:
                    for cell, claim in claims[verification]:
                        failed = verdict.status == "error"
                        raw = verdict.raw if failed else with_verdict(claim, verdict.raw)
                        yield cell, verdict._replace(raw=raw)

    def _answered(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        unread: list[tuple[Call, ModelOutput]] = []
        for batch in self._batches(self._calls(cells), unread):
            yield batch
            if unread:
                yield from self._asked_again(unread)
                unread.clear()

    def _batches(
        self, calls: Iterable[Call], unread: list[tuple[Call, ModelOutput]]
    ) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Yield answers batch by batch; add unreadable lists to `unread`."""
        new_tokens, beams = 0, 1
        if self.free_text:
            new_tokens, beams = self.decoding.new_tokens, self.decoding.beams
        elif self.asks_lists:
            most = max(prompt.group for prompt in self.prompts.values())
            new_tokens = self._list_tokens.longest(most)

        def launch(jobs: Sequence[Job[Call]], max_tokens: int) -> Callable[[], list[tuple[Cell, Answer]]]:
            outputs = self._launch(jobs, max_tokens)
            return lambda: [
                pair
                for job, output in zip(jobs, outputs(), strict=True)
                for pair in self._answers_of(job.request, output, unread)
            ]

        budget = self.backend.budget(self._settings.max_batch_tokens, new_tokens, beams)
        batcher = Batcher(self._prepare, launch, budget, self.backend.plan)
        return batcher.run(calls, *self.backend.windows)

    def _asked_again(
        self, calls: Sequence[tuple[Call, ModelOutput]]
    ) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Yield answers for unreadable lists: decoded greedily, then cell by cell, then unparsed."""
        unread: list[tuple[Call, ModelOutput]] = []
        yield from self._greedy._batches([call for call, _ in calls], unread)
        alone = [(cell,) for call, _ in unread if len(call) > 1 for cell in call]
        unread = [(call, output) for call, output in unread if len(call) == 1]
        yield from self._batches(alone, unread)
        if unread:
            yield [
                (call[0], Answer(None, "unparsed", output.text, cut_at=self._cut_at(output)))
                for call, output in unread
            ]

    @cached_property
    def _greedy(self) -> LanguageGrader:
        """A grader for repeated requests with greedy decoding, since beam search would repeat its answer."""
        return self._asking(self.prompts.values(), replace(self.decoding, beams=1))

    def _asking(self, prompts: Iterable[Prompt], decoding: Decoding) -> LanguageGrader:
        """Return a grader with the same model and other prompts or decoding."""
        return LanguageGrader(self.backend, [*prompts], decoding, self._settings, self._memory)

    def _prepare(self, window: list[Call]) -> tuple[list[Job[Call]], list[tuple[Cell, Answer]]]:
        """Return the prompts of calls as tokens, and answers for cells without a possible prompt.

        A call without room for a passage is split.
        """
        jobs: list[Job[Call]] = []
        unable: list[tuple[Cell, Answer]] = []
        while window:
            askable, texts = [], []
            for call in window:
                cell = call[0]
                prompt = self.prompts[cell.item.kind]
                if prompt.needs_key and not cell.item.gold_answers:
                    reason = f"has no answer key, which prompt {prompt.name} needs"
                    unable.append((cell, Answer(None, "error", reason)))
                    continue
                askable.append((call, prompt))
                texts.append(self._text(prompt, call, cell.text[: self._enough]))
            window = []
            for (call, prompt), tokens in zip(askable, self.backend.tokens.encode(texts), strict=True):
                text = call[0].text
                if len(tokens) > self.max_length or len(text) > self._enough:
                    try:
                        tokens = self._cut(prompt, call)
                    except NoRoomError:
                        if len(call) > 1:
                            window += (call[: len(call) // 2], call[len(call) // 2 :])
                            continue
                        room = f"leaves no room for a passage in the {self.max_length} tokens of a prompt"
                        unable.append((call[0], Answer(None, "error", f"{room}: shorten it")))
                        continue
                jobs.append(Job(call, tokens, (text, prompt.name, call[0].query_text)))
        return _with_prefixes(jobs), unable

    @property
    def _enough(self) -> int:
        """A number of characters that exceeds a prompt's length for all usual texts."""
        return 16 * self.max_length

    def _text(self, prompt: Prompt, call: Call, passage: str) -> str:
        text = self._filled(prompt, call, passage, self.backend.tokens.plain)
        # Local models have no common interface for system messages.
        return f"{prompt.system}\n\n{text}" if prompt.system else text

    def _cut(self, prompt: Prompt, call: Call) -> list[int]:
        whole, characters = call[0].text, self._enough
        while True:
            # Cut a passage of megabytes before tokenising.
            passage = self.backend.tokens.plain(whole[:characters])
            tokens, part = fitted(
                lambda part: self._text(prompt, call, part), passage, self.backend.tokens, self.max_length
            )
            if len(part) < len(passage) or characters >= len(whole):
                return tokens
            characters *= 4

    def _launch(self, jobs: Sequence[Job[Call]], max_tokens: int) -> Callable[[], Sequence[ModelOutput]]:
        prompts = [job.tokens for job in jobs]
        if self.free_text:
            decoding = self.backend.decoding(self.decoding.new_tokens, beams=self.decoding.beams)
            return lambda: [ModelOutput(text, cut=cut) for text, cut in self.backend.write(prompts, decoding)]
        if self.asks_lists:
            return partial(self._lists, jobs)
        scores = self.backend.score(jobs, self._labels, max_tokens)
        return lambda: [self._best(row) for row in scores()]

    def _lists(self, jobs: Sequence[Job[Call]]) -> list[ModelOutput]:
        """Have the model write lists of permitted labels."""
        numbers = [len(job.request) for job in jobs]
        lists = LabelLists(self._list_tokens, numbers, self.backend.ends[0])
        decoding = self.backend.decoding(self._list_tokens.longest(max(numbers)))
        self.backend.write([job.tokens for job in jobs], decoding, lists)
        return [ModelOutput("", listed=tuple(map(self._best, rows))) for rows in lists.scores]

    def _best(self, scores: Sequence[float]) -> ModelOutput:
        """Return the most probable answer (ties: the first in the prompt) and all probabilities."""
        if any(map(math.isnan, scores)):
            reason = "its weights are damaged, or it cannot run with this `dtype`"
            raise GraderError(f"the model gives no numbers (NaN): {reason}", path=self.backend.folder)
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        total = sum(shares)
        # Differences below float32 precision are ties.
        rounded = [round(score, DIGITS) for score in scores]
        best = rounded.index(max(rounded))
        return ModelOutput(self._labels[best], tuple(share / total for share in shares))

    def _answers_of(
        self, call: Call, output: ModelOutput, unread: list[tuple[Call, ModelOutput]]
    ) -> Iterator[tuple[Cell, Answer]]:
        """Yield the answer to each cell of a call; add an unreadable list to `unread`."""
        prompt = self.prompts[call[0].item.kind]
        if prompt.group == 1:
            yield call[0], self._answer(prompt, call[0], output)
            return
        listed: Sequence[ModelOutput] | None = output.listed
        if not listed:
            labels = prompt.read_list(output.text, len(call), cut=output.cut)
            listed = None if labels is None else [ModelOutput(label) for label in labels]
        if listed is None:
            unread.append((call, output))
            return
        for cell, label in zip(call, listed, strict=True):
            yield cell, self._answer(prompt, cell, label)

    def _answer(self, prompt: Prompt, cell: Cell, output: ModelOutput) -> Answer:
        if output.probabilities is None:
            read = prompt.read(output.text, cell.item, self.compat, cut=output.cut)
            return Answer.read(read, output.text, cut_at=self._cut_at(output))
        shares = [0.0] * RATINGS
        for (_, rating), share in zip(prompt.answers, output.probabilities, strict=True):
            shares[rating] += share
        rating = dict(prompt.answers)[output.text]
        return Answer(rating, "ok", output.text, tuple(round(share, 6) for share in shares))

    def _cut_at(self, output: ModelOutput) -> int | None:
        return cut_at(output.text, self.decoding.new_tokens, cut=output.cut)


def _with_prefixes(jobs: Sequence[Job[Call]]) -> list[Job[Call]]:
    """Return jobs with the length of the common prefix of their passage's prompts."""
    by_group: dict[Any, list[Job[Call]]] = {}
    for job in jobs:
        by_group.setdefault(job.group, []).append(job)
    prefixes = dict.fromkeys(by_group, 0)
    for group, members in by_group.items():
        # The last token of a prompt is always read separately.
        columns = zip(*(job.tokens[:-1] for job in members), strict=False)
        common = sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, columns))
        if len(members) > 1 and common >= LEAST_SHARED:
            prefixes[group] = common
    return [job._replace(prefix=prefixes[job.group]) for job in jobs]


def _decoding(settings: GraderSection, prompts: Sequence[Prompt]) -> Decoding:
    """Return the decoding in the settings, else `choices` if the prompt has permitted answers, else `beam`.

    Raises:
        GraderError: `choices` is set for a prompt with free-text answers.
    """
    free = [prompt.name for prompt in prompts if not prompt.answers]
    if settings.decode == "choices" and free:
        raise GraderError(f'prompt {free[0]} needs a free-text answer: set `decode = "beam"` in [grader]')
    mode = settings.decode or ("beam" if free else "choices")
    return Decoding(mode, settings.beams, settings.max_new_tokens or settings.local_tokens)


def local_factory(make: type[LocalModel], summary: str) -> Factory:
    """Return the factory of graders with this kind of model."""
    return Factory(
        summary=summary,
        missing=loading.missing_for_models,
        create=partial(_create, make),
        standard=True,
        reads=("prompt",),
        reading=prompted_reading,
    )


def _create(make: type[LocalModel], settings: GraderSection, root: Path) -> LanguageGrader:
    """Create a grader from its settings.

    Raises:
        GraderError: a package or the model is missing, or the settings do not go together.
    """
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"the `{make.name}` grader cannot run: {missing}")
    model = settings.model or make.default_model
    if model is None:
        raise GraderError(f"the `{make.name}` grader has no model: {loading.HOW_TO_GET}")
    folder = model_folder(model, settings.revision, root, make.name, loading.HOW_TO_GET)
    first = make.decoder_only if settings.passage_first is None else settings.passage_first
    prompts = chosen_prompts(settings, root, passage_first=first)
    backend = make.shared(folder, settings.device, settings.dtype)
    memory = root / ".trecexam" / "weights.json"
    return LanguageGrader(backend, prompts, _decoding(settings, prompts), settings, memory)
