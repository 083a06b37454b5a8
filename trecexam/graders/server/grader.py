"""The `openai` grader: a model behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud API)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Estimate, Factory
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.prompts import Prompt, PromptedGrader, chosen_prompts, prompted_reading, with_verdict
from trecexam.graders.replies import FirstReplies, Unwritten, WrittenText, cut_at, read_reply, unwrapped
from trecexam.graders.server.model import (
    TRUNCATION,
    PassingError,
    Request,
    Server,
    distribution,
    plain,
    shortened,
)
from trecexam.packages import missing_for_servers

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

Call = tuple[Cell, ...]
#: Statuses of what a model wrote, and neither refused nor failed.
_READ = ("ok", "unparsed")
Results = list[tuple[Cell, Answer | PassingError]]


class ServerGrader(PromptedGrader):
    """Grades by asking an OpenAI-compatible server."""

    free_text = True

    def __init__(self, server: Server, prompts: Sequence[Prompt], settings: GraderSection) -> None:
        super().__init__(prompts, settings.compat)
        self.server, self.meter = server, server.meter
        self._settings = settings
        # A reply that was cut off at fewer tokens is asked for again.
        self.reply_limit = server.new_tokens
        self.cells_share = "answer" if self.asks_lists else "nothing"

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        prompts = [self.prompts[kind] for kind in sorted(self.prompts)]
        return {
            "grader": "openai",
            "model": self._settings.model,
            # Which weights the server has under the model's name, in the user's words.
            "revision": self._settings.revision,
            "prompts": [prompt.identity() for prompt in prompts],
            "decode": self.server.decoding(map(_texts, prompts)),
            "max_characters": self._settings.max_characters,
            "truncation": TRUNCATION,
        }

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Answers as they come; a list may be empty, so that who reads them is never kept waiting."""
        from trecexam.graders.server.exchange import asked

        calls, first = self._calls(cells), FirstReplies()
        return asked(self.server, calls, self._most, self._graded, "cells", ahead=2, first=first)

    def _expected(self, call: Call, *, most: bool = False) -> Usage:
        """Return what a call takes if its answer is read at once; with `most`, its largest answer."""
        prompt, limit = self.prompts[call[0].item.kind], self.server.new_tokens

        def out(prompt: Prompt) -> int:
            short, labels = bool(prompt.answers), len(call)
            return limit if most else self.server.meter.expected_out(limit, short=short, labels=labels)

        if _lacks_key(prompt, call[0]):
            return Usage()
        usage = Usage(1, guessed(prompt.system + self._text(prompt, *call)), out(prompt))
        if prompt.verification is None:
            return usage
        asked = self._text(prompt.verification, call[0]._replace(text=""))
        return usage.plus(Usage(1, guessed(asked) + limit, out(prompt.verification)))

    def _most(self, call: Call) -> Usage:
        """Return what a call may take: a list is requested, then each of its labels."""
        usage = self._expected(call, most=True)
        for cell in call if len(call) > 1 else ():
            usage = usage.plus(self._expected((cell,), most=True))
        return usage

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        """Return what it would take to grade these; asks nobody. Tokens in are guessed from the prompts."""
        calls = self._calls(cells)
        return self.server.taking((len(call), self._expected(call), self._most(call)) for call in calls)

    async def _graded(self, exchange: Exchange, call: Call) -> Results:
        prompt = self.prompts[call[0].item.kind]
        if prompt.group > 1:
            return await self._listed(exchange, prompt, call)
        return [(call[0], await self._answered(exchange, prompt, call[0]))]

    async def _listed(self, exchange: Exchange, prompt: Prompt, call: Call) -> Results:
        """Ask for the labels of a list; of one that cannot be read, cell by cell."""
        reply = await exchange.ask(Request(self._text(prompt, *call), _texts(prompt), len(call)))
        if not isinstance(reply, WrittenText) or reply.refused:
            result = _failed(reply)
            return [(cell, result) for cell in call]
        listed = prompt.read_list(reply.text, len(call), cut=reply.cut)
        if listed is not None:
            return [
                (cell, Answer.read(prompt.read(label, cell.item), label))
                for cell, label in zip(call, listed, strict=True)
            ]
        if len(call) == 1:
            return [(call[0], Answer(None, "unparsed", reply.text, cut_at=self._cut_at(reply)))]
        results: Results = []
        for cell in call:
            if results and isinstance(last := results[-1][1], PassingError):
                # It is down or busy, and was given its time.
                results.append((cell, last))
            else:
                results += await self._listed(exchange, prompt, (cell,))
        return results

    async def _answered(self, exchange: Exchange, prompt: Prompt, cell: Cell) -> Answer | PassingError:
        if _lacks_key(prompt, cell):
            return Answer(None, "error", f"has no answer key, which prompt {prompt.name} needs")
        result = await self._asked(exchange, prompt, cell)
        if prompt.verification is None or isinstance(result, PassingError) or result.status not in _READ:
            return result
        if result.cut_at is not None and result.status != "ok":
            return result
        answer_text = unwrapped(read_reply(result.raw).text)
        verdict = await self._asked(exchange, prompt.verification, cell._replace(text=answer_text))
        if not isinstance(verdict, PassingError) and verdict.status in _READ:
            verdict = verdict._replace(raw=with_verdict(answer_text, verdict.raw))
        return verdict

    async def _asked(self, exchange: Exchange, prompt: Prompt, cell: Cell) -> Answer | PassingError:
        reply = await exchange.ask(Request(self._text(prompt, cell), _texts(prompt)))
        if not isinstance(reply, WrittenText) or reply.refused:
            return _failed(reply)
        rating = prompt.read(reply.text, cell.item, self.compat, cut=reply.cut)
        shares = distribution(reply.steps, unwrapped(read_reply(reply.text).text), prompt.answers)
        return Answer.read(rating, reply.text, shares, self._cut_at(reply))

    def _text(self, prompt: Prompt, *cells: Cell) -> str:
        return self._filled(prompt, cells, shortened(cells[0].text, self._settings.max_characters), plain)

    def _cut_at(self, reply: WrittenText) -> int | None:
        return cut_at(reply.text, self.server.new_tokens, cut=reply.cut)


def _failed(reply: WrittenText | Unwritten | PassingError) -> Answer | PassingError:
    """Return what is stored of a request that a model refused, or that got no answer."""
    if isinstance(reply, WrittenText):
        return Answer(None, "refused", reply.text)
    if isinstance(reply, PassingError):
        return reply
    return Answer(None, "error", f"was rejected by the server, which {reply.reason}")


def _lacks_key(prompt: Prompt, cell: Cell) -> bool:
    """Return True for a cell that is not graded: its item has no answer key and the prompt needs one."""
    return prompt.group == 1 and prompt.needs_key and not cell.item.gold_answers


def _texts(prompt: Prompt) -> list[str]:
    return [answer for answer, _ in prompt.answers]


def _create(settings: GraderSection, root: Path) -> ServerGrader:
    if settings.decode is not None:
        raise GraderError(
            "`decode` in [grader] is for models in this process; `structured` holds a server's to the "
            "permitted answers"
        )
    first = settings.passage_first is None or settings.passage_first
    prompts = chosen_prompts(settings, root, passage_first=first)
    server = Server(
        settings,
        # Log-probabilities of labels in a list are no single tokens.
        logprobs=settings.logprobs and prompts[0].group == 1,
        structured=None if settings.structured == "none" else settings.structured,
        system=prompts[0].system,
    )
    free = [prompt.name for prompt in prompts if not prompt.answers]
    if server.structured and free:
        raise GraderError(f"prompt {free[0]} wants free text: take `structured` out of [grader]")
    return ServerGrader(server, prompts, settings)


FACTORY = Factory(
    summary="a model behind an OpenAI-compatible server: vLLM, llama.cpp, TGI, a cloud API",
    missing=missing_for_servers,
    create=_create,
    standard=True,
    runs_model=False,
    reads=("base_url", "prompt"),
    reading=prompted_reading,
)
