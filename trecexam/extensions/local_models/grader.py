"""A grader with a local language model: makes prompts, runs batches and reads answers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import Job, ModelOutput
from trecexam.extensions.local_models.batching import Batcher, OutOfMemoryError
from trecexam.extensions.local_models.lists import LabelLists, ListTokens
from trecexam.extensions.local_models.local import LocalModel
from trecexam.extensions.local_models.truncation import NoRoomError, fitted
from trecexam.graders.base import Answer, Cell
from trecexam.graders.prompts import DEFAULT, Prompt, named
from trecexam.graders.prompts.assignments import with_place
from trecexam.graders.prompts.prompted import PromptedGrader, prompted_reading, with_verdict
from trecexam.graders.replies import read_reply, unwrapped
from trecexam.graders.weights import LANGUAGE_FILES, config_digest, model_folder, weights_digest

#: Cells that one prompt asks about.
Call = tuple[Cell, ...]

#: Ratings that a stored distribution has a place for.
RATINGS = 6
#: Digits of log-probabilities, in nats, for comparing answers.
DIGITS = 4
#: Tokens that prompts have in common at least, so that these are read once.
LEAST_SHARED = 16


@dataclass(frozen=True)
class Decoding:
    """How answers are decoded.

    Attributes:
        mode: "choices" (the most probable of the permitted answers) or "beam" (beam search, free text).
        beams: beams of the search.
        new_tokens: tokens that an answer may have in beam search.
    """

    mode: str = "choices"
    beams: int = 5
    new_tokens: int = 512

    def identity(self, prompts: Iterable[Prompt]) -> dict[str, Any]:
        """All that can change an answer; includes the permitted answers with `choices`."""
        if self.mode == "choices":
            return {"mode": "choices", "answers": [prompt.answers for prompt in prompts]}
        return {"mode": "beam", "beams": self.beams, "new_tokens": self.new_tokens, "early_stopping": True}


class LanguageGrader(PromptedGrader):
    """Grades with a local language model.

    Args, beside those of `PromptedGrader`:
        model: the model's name, for the identity and exports.
        folder: where its files are.
        max_length: tokens of a prompt; None for what the model takes.
        max_batch_tokens: tokens of a batch, padding counted; None for what suits the device.
    """

    def __init__(
        self,
        backend: LocalModel,
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
        self._groups = count()
        self._labels = [label for label, _ in self._answers]

    @cached_property
    def _list_tokens(self) -> ListTokens:
        return ListTokens.of(self._labels, self.backend.answers, self.folder)

    @property
    def free_text(self) -> bool:
        """Whether answers are free text."""
        return self.decoding.mode == "beam"

    @property
    def cells_share(self) -> Literal["nothing", "prompts", "answer"]:
        """Whether the model shares a passage's prefix between prompts, or answers them together."""
        if self.asks_lists:
            return "answer"
        return "prompts" if self.backend.name == "causal" else "nothing"

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The model's environment; None before it is loaded."""
        return self.backend.environment

    @property
    def model_to_load(self) -> str:
        """The model's name; empty once the model is loaded."""
        return self.model if self.environment is None else ""

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
        """The maximum length of a prompt, in tokens."""
        longest = 16 * max(prompt.group for prompt in self.prompts.values())
        limit = self.backend.length_limit(
            self.decoding.new_tokens if self.decoding.mode == "beam" else longest
        )
        return limit if self._asked_length is None else min(limit, self._asked_length)

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in self._answered(cells):
            yield [*self._verified(batch)] if self._verifiers else batch

    @cached_property
    def _verifiers(self) -> Mapping[str, LanguageGrader]:
        """For each kind of item, a grader with the same model that verifies answers."""
        return {
            kind: self._asking([prompt.verification], self.decoding)
            for kind, prompt in self.prompts.items()
            if prompt.verification is not None
        }

    def _verified(self, batch: Sequence[tuple[Cell, Answer]]) -> Iterator[tuple[Cell, Answer]]:
        """A batch's answers, verified by the model; equal answers to an item are verified once."""
        claims: dict[Cell, list[tuple[Cell, str]]] = {}
        for cell, answer in batch:
            if cell.item.kind not in self._verifiers or answer.status not in {"ok", "unparsed"}:
                yield cell, answer
                continue
            if answer.cut_at is not None and answer.status != "ok":
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
        """Yields answers batch by batch; adds unreadable lists to `unread`."""
        # Another thread adds to it.
        unable: deque[tuple[Cell, Answer]] = deque()
        new_tokens, beams = 0, 1
        if self.free_text:
            new_tokens, beams = self.decoding.new_tokens, self.decoding.beams
        elif self.asks_lists:
            most = max(prompt.group for prompt in self.prompts.values())
            new_tokens = self._list_tokens.longest(most)
        budget = self.backend.budget(self._asked_budget, new_tokens, beams)
        batcher: Batcher[Call, Job, ModelOutput] = Batcher(
            lambda window: self._prepare(window, unable),
            lambda jobs: self._launch(jobs, budget.tokens),
            budget,
            partial(self.backend.plan, new_tokens=new_tokens, beams=beams),
        )
        try:
            for batch in batcher.run(calls, *self.backend.windows):
                answers = [pair for job, output in batch for pair in self._answers_of(job, output, unread)]
                yield answers + [unable.popleft() for _ in range(len(unable))]
        except OutOfMemoryError as error:
            raise GraderError(
                f"{error} into the memory of the device: set a smaller `max_length` in [grader], "
                "or another `device`"
            ) from error
        if unable:
            yield [*unable]

    def _asked_again(
        self, calls: Sequence[tuple[Call, ModelOutput]]
    ) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Answers for unreadable lists: decoded greedily, then cell by cell, then unparsed."""
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
        """The same request with greedy decoding, since beam search would repeat its answer."""
        return self._asking(self.prompts.values(), replace(self.decoding, beams=1))

    def _asking(self, prompts: Iterable[Prompt], decoding: Decoding) -> LanguageGrader:
        """A grader with the same model and other prompts or decoding."""
        return LanguageGrader(
            self.backend,
            [*prompts],
            decoding,
            self.model,
            self.folder,
            max_length=self._asked_length,
            max_batch_tokens=self._asked_budget,
        )

    def _prepare(self, window: list[Call], unable: deque[tuple[Cell, Answer]]) -> list[Job]:
        """The window's prompts as tokens; cells without a possible prompt are added to `unable`."""
        groups: dict[tuple[str, str, str], int] = {}
        jobs: list[Job] = []
        while window:
            halves: list[Call] = []
            jobs += self._prompts(window, groups, unable, halves)
            window = halves
        return _with_prefixes(jobs)

    def _prompts(
        self,
        calls: Sequence[Call],
        groups: dict[tuple[str, str, str], int],
        unable: deque[tuple[Cell, Answer]],
        halves: list[Call],
    ) -> Iterator[Job]:
        """The prompts of calls; calls without room for a passage are split and added to `halves`."""
        askable, texts = [], []
        for call in calls:
            cell = call[0]
            prompt = self.prompts[cell.item.kind]
            if prompt.needs_key and not cell.item.gold_answers:
                unable.append((cell, _error(f"has no answer key, which prompt {prompt.name} needs")))
                continue
            askable.append((call, prompt))
            texts.append(self._text(prompt, call, cell.text[: self._enough]))
        for (call, prompt), tokens in zip(askable, self.backend.tokens.encode(texts), strict=True):
            text = call[0].text
            if len(tokens) > self.max_length or len(text) > self._enough:
                try:
                    tokens = self._cut(prompt, call)
                except NoRoomError:
                    if len(call) > 1:
                        halves += (call[: len(call) // 2], call[len(call) // 2 :])
                        continue
                    room = f"leaves no room for a passage in the {self.max_length} tokens of a prompt"
                    unable.append((call[0], _error(f"{room}: shorten it")))
                    continue
            key = text, prompt.name, call[0].query_text
            if key not in groups:
                groups[key] = next(self._groups)
            yield Job(call, prompt, tokens, groups[key])

    @property
    def _enough(self) -> int:
        """A number of characters that exceeds a prompt's length for all usual texts."""
        return 16 * self.max_length

    def _text(self, prompt: Prompt, call: Call, passage: str) -> str:
        text = self._filled(prompt, call, passage, self.backend.tokens.plain)
        # Models have no way in common to be told something before the prompt.
        return f"{prompt.system}\n\n{text}" if prompt.system else text

    def _cut(self, prompt: Prompt, call: Call) -> list[int]:
        whole, characters = call[0].text, self._enough
        while True:
            # A passage of megabytes is not tokenised for the sake of its first page.
            passage = self.backend.tokens.plain(whole[:characters])
            tokens, part = fitted(
                lambda part: self._text(prompt, call, part), passage, self.backend.tokens, self.max_length
            )
            if len(part) < len(passage) or characters >= len(whole):
                return tokens
            characters *= 4

    def _launch(self, jobs: Sequence[Job], max_tokens: int) -> Callable[[], Sequence[ModelOutput]]:
        prompts = [job.tokens for job in jobs]
        if self.free_text:
            decoding = self.backend.decoding(self.decoding.new_tokens, beams=self.decoding.beams)
            return lambda: [ModelOutput(text, cut=cut) for text, cut in self.backend.write(prompts, decoding)]
        if self.asks_lists:
            return partial(self._lists, jobs)
        scores = self.backend.score(jobs, self._labels, max_tokens)
        return lambda: [self._best(row) for row in scores()]

    def _lists(self, jobs: Sequence[Job]) -> list[ModelOutput]:
        """Have the model write lists of permitted labels."""
        numbers = [len(job.cells) for job in jobs]
        lists = LabelLists(self._list_tokens, numbers, self.backend.ends[0])
        decoding = self.backend.decoding(self._list_tokens.longest(max(numbers)))
        self.backend.write([job.tokens for job in jobs], decoding, lists)
        return [ModelOutput("", listed=tuple(map(self._best, rows))) for rows in lists.scores]

    def _best(self, scores: Sequence[float]) -> ModelOutput:
        """The most probable answer (ties: the first in the prompt), and each answer's probability."""
        if any(math.isnan(score) for score in scores):
            raise GraderError(
                "the model gives no numbers (NaN): its weights are damaged, or it cannot run with this "
                "`dtype`",
                path=self.folder,
            )
        top = max(scores)
        shares = [math.exp(score - top) for score in scores]
        total = sum(shares)
        # What differs by less than float32 can tell is equal.
        rounded = [round(score, DIGITS) for score in scores]
        best = rounded.index(max(rounded))
        return ModelOutput(self._answers[best][0], tuple(share / total for share in shares))

    def _answers_of(
        self, job: Job, output: ModelOutput, unread: list[tuple[Call, ModelOutput]]
    ) -> Iterator[tuple[Cell, Answer]]:
        """The answer to each cell of a job; an unreadable list is added to `unread`."""
        if job.prompt.group == 1:
            yield job.cells[0], self._answer(job.prompt, job.cells[0], output)
            return
        number = len(job.cells)
        listed: Sequence[ModelOutput] | None = output.listed
        if not listed:
            labels = job.prompt.read_list(output.text, number, cut=output.cut)
            listed = None if labels is None else [ModelOutput(label) for label in labels]
        if listed is None:
            unread.append((job.cells, output))
            return
        for rank, (cell, label) in enumerate(zip(job.cells, listed, strict=True), 1):
            answer = self._answer(job.prompt, cell, label)
            yield cell, answer._replace(raw=with_place(label.text, rank, number))

    def _answer(self, prompt: Prompt, cell: Cell, output: ModelOutput) -> Answer:
        if output.probabilities is None:
            reading = prompt.read(output.text, cell.item, self.compat, cut=output.cut)
            return Answer(reading.rating, reading.status, output.text, cut_at=self._cut_at(output))
        shares = [0.0] * RATINGS
        for (_, rating), share in zip(prompt.answers, output.probabilities, strict=True):
            shares[rating] += share
        rating = dict(prompt.answers)[output.text]
        return Answer(rating, "ok", output.text, tuple(round(share, 6) for share in shares))

    def _cut_at(self, output: ModelOutput) -> int | None:
        """Return the limit that ended an answer, if one did; a thought without its end counts as cut off."""
        cut = read_reply(output.text, cut=output.cut).ends_early
        return self.decoding.new_tokens if cut else None


def _error(reason: str) -> Answer:
    """The error for a cell without a possible prompt."""
    return Answer(None, "error", reason)


def _with_prefixes(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs with the number of tokens that the prompts about their passage begin with."""
    by_group: dict[int, list[Job]] = {}
    for job in jobs:
        by_group.setdefault(job.group, []).append(job)
    prefixes = dict.fromkeys(by_group, 0)
    for group, members in by_group.items():
        if len(members) > 1:
            # The last token of a prompt is always read on its own.
            rows = [list(job.tokens[:-1]) for job in members]
            first, last = min(rows), max(rows)
            pairs = enumerate(zip(first, last, strict=False))
            common = next((index for index, (a, b) in pairs if a != b), min(len(first), len(last)))
            prefixes[group] = common if common >= LEAST_SHARED else 0
    return [job._replace(prefix=prefixes[job.group]) for job in jobs]


def chosen_prompts(settings: GraderSection, root: Path, *, passage_first: bool) -> list[Prompt]:
    """The prompts in the settings, or the paper's self-rating prompts."""
    names = DEFAULT if settings.prompt is None else (settings.prompt,)
    prompts = [named(name, root) for name in names]
    return [prompt.passage_first() for prompt in prompts] if passage_first else prompts


def chosen_decoding(settings: GraderSection, prompts: Sequence[Prompt]) -> Decoding:
    """The decoding: as set, else `choices` if the prompt has permitted answers, else `beam`.

    Raises:
        GraderError: `choices` is set for a prompt that wants free text.
    """
    free = [prompt.name for prompt in prompts if not prompt.answers]
    if settings.decode == "choices" and free:
        raise GraderError(f'prompt {free[0]} needs a free-text answer: set `decode = "beam"` in [grader]')
    mode = settings.decode or ("beam" if free else "choices")
    return Decoding(mode, settings.beams, settings.max_new_tokens or settings.local_tokens)


def local_reading(settings: GraderSection, root: Path) -> dict[str, Any]:
    """Reads stored answers; needs no model."""
    return prompted_reading(settings, root)


def local_grader(
    settings: GraderSection,
    root: Path,
    make: type[LocalModel],
    *,
    default: str | None,
    passage_first: bool,
) -> LanguageGrader:
    """Creates a grader from its settings.

    Args:
        make: the model.
        default: the model where the settings name none.
        passage_first: where the settings do not say.

    Raises:
        GraderError: a package or the model is missing, or the settings do not go together.
    """
    missing = loading.missing_for_models()
    if missing:
        raise GraderError(f"the `{make.name}` grader cannot run: {missing}")
    model = settings.model or default
    if model is None:
        raise GraderError(f"the `{make.name}` grader has no model: {loading.HOW_TO_GET}")
    folder = model_folder(model, settings.revision, root, make.name, loading.HOW_TO_GET)
    first = passage_first if settings.passage_first is None else settings.passage_first
    prompts = chosen_prompts(settings, root, passage_first=first)
    return LanguageGrader(
        make.shared(folder, settings.device, settings.dtype),
        prompts,
        chosen_decoding(settings, prompts),
        Path(model).name,
        folder,
        max_length=settings.max_length,
        max_batch_tokens=settings.max_batch_tokens,
        compat=settings.compat,
        memory=root / ".trecexam" / "weights.json",
    )
