"""The `openai` grader: a model behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud API).

Prompts go out, several at a time; answers are read as those of other models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Estimate, Factory, UngradedError
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.prompts import Prompt, chosen_prompts
from trecexam.graders.prompts.assignments import with_place
from trecexam.graders.prompts.prompted import PromptedGrader, prompted_reading, with_verdict
from trecexam.graders.replies import FirstReplies, read_reply, unwrapped
from trecexam.graders.server.messages import Reply, Unanswered, distribution, plain
from trecexam.graders.server.model import Server, missing_for_servers

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

#: Cells that one call asks about, and what came of them.
Call = tuple[Cell, ...]
Results = list[tuple[Cell, Answer | Unanswered]]

#: Characters; longer strings without a blank are not words.
_LONGEST_WORD = 100


class ServerGrader(PromptedGrader):
    """Grades by asking an OpenAI-compatible server."""

    #: Answers are the model's own words, to be read.
    free_text = True

    def __init__(self, server: Server, prompts: Sequence[Prompt], settings: GraderSection) -> None:
        super().__init__(prompts, settings.compat)
        self.server, self.meter = server, server.meter
        self._settings = settings
        # A reply that was cut off at fewer tokens is asked for again.
        self.reply_limit = server.form.max_tokens
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
            "decode": self.server.form.identity(_texts(prompt) for prompt in prompts),
            "max_characters": self._settings.max_characters,
            "truncation": f"end of passage, at a word of at most {_LONGEST_WORD} characters",
        }

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Answers as they come; a list may be empty, so that who reads them is never kept waiting."""
        from trecexam.graders.server.exchange import asked

        unanswered: list[str] = []
        first = FirstReplies()
        batches = asked(
            self.server,
            self._probe(),
            first.counting(self._calls(cells)),
            self._most,
            self._graded,
            then="to grade the rest",
            ahead=2,
            waits=lambda: first.are_due,
        )
        with closing(batches):
            for calls in batches:
                results = [result for _, of_call in calls for result in of_call]
                first.add(result.status if isinstance(result, Answer) else "" for _, result in results)
                unanswered += [result.reason for _, result in results if isinstance(result, Unanswered)]
                yield [(cell, result) for cell, result in results if isinstance(result, Answer)]
        if unanswered:
            raise UngradedError(
                f"{self._settings.base_url} gave no answer to {len(unanswered):,} cells, which are sent "
                f"again: it {unanswered[-1]}"
            )

    def _expected(self, call: Call, out: Callable[[Prompt], int] | None = None) -> Usage:
        """Return what a call takes where its answer is read at once.

        Args:
            out: the tokens of an answer to a prompt; None for as many as there may be.
        """
        prompt, most = self.prompts[call[0].item.kind], self.server.form.max_tokens
        out = out or (lambda _: most)
        if _lacks_key(prompt, call):
            return Usage()
        usage = Usage(1, guessed(prompt.system + self._text(prompt, *call)), out(prompt))
        if prompt.verification is None:
            return usage
        asked = self._text(prompt.verification, call[0]._replace(text=""))
        return usage.plus(Usage(1, guessed(asked) + most, out(prompt.verification)))

    def _most(self, call: Call) -> Usage:
        """Return what a call may take: a list is requested twice, then each of its labels."""
        usage = self._expected(call)
        if self.prompts[call[0].item.kind].group > 1:
            usage = usage.plus(usage)
            for cell in call if len(call) > 1 else ():
                usage = usage.plus(self._expected((cell,)))
        return usage

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        """Return what it would take to grade these; asks nobody. Tokens in are guessed from the prompts."""
        number, meter, limit = 0, self.server.meter, self.server.form.max_tokens
        expected = most = Usage()

        def out(prompt: Prompt) -> int:
            return meter.expected_out(limit, short=bool(prompt.answers), labels=len(call))

        for call in self._calls(cells):
            number += len(call)
            most = most.plus(self._most(call))
            expected = expected.plus(self._expected(call, out))
        return self.server.estimate(number, expected, most)

    def _probe(self) -> tuple[str, list[str]]:
        prompt = next(iter(self.prompts.values()))
        item = Item("q", "q/1", "What is the capital of France?", prompt.asks)
        return prompt.text("capital of France", item, "Paris is the capital of France."), _texts(prompt)

    async def _graded(self, exchange: Exchange, call: Call) -> Results:
        prompt = self.prompts[call[0].item.kind]
        if prompt.group > 1:
            return await self._listed(exchange, prompt, call)
        return [(call[0], await self._answered(exchange, prompt, call[0]))]

    async def _listed(self, exchange: Exchange, prompt: Prompt, call: Call, *, tries: int = 2) -> Results:
        """Ask for the labels of a list; of one that cannot be read a second time either, cell by cell."""
        labels, unread = _texts(prompt), Answer(None, "unparsed", "")
        for number in range(tries):
            form = self.server.form.of_list(len(call), again=number > 0)
            reply = await exchange.ask(self._text(prompt, *call), labels, form)
            if not isinstance(reply, Reply) or reply.refused:
                result = _failed(reply)
                return [(cell, result) for cell in call]
            listed = prompt.read_list(reply.text, len(call), cut=reply.cut)
            if listed is not None:
                return [
                    (cell, Answer(*prompt.read(label, cell.item), with_place(label, position, len(call))))
                    for position, (cell, label) in enumerate(zip(call, listed, strict=True), 1)
                ]
            unread = unread._replace(raw=reply.text, cut_at=self._cut_at(reply))
        if len(call) == 1:
            return [(call[0], unread)]
        results: Results = []
        for cell in call:
            if results and isinstance(last := results[-1][1], Unanswered):
                # It is down or busy, and was given its time.
                results.append((cell, last))
            else:
                results += await self._listed(exchange, prompt, (cell,), tries=1)
        return results

    async def _answered(self, exchange: Exchange, prompt: Prompt, cell: Cell) -> Answer | Unanswered:
        if _lacks_key(prompt, (cell,)):
            return Answer(None, "error", f"has no answer key, which prompt {prompt.name} needs")
        result = await self._asked(exchange, prompt, cell)
        if prompt.verification is None or not _is_read(result):
            return result
        if result.cut_at is not None and result.status != "ok":
            return result
        answer_text = unwrapped(read_reply(result.raw).text)
        verdict = await self._asked(exchange, prompt.verification, cell._replace(text=answer_text))
        if _is_read(verdict):
            verdict = verdict._replace(raw=with_verdict(answer_text, verdict.raw))
        return verdict

    async def _asked(self, exchange: Exchange, prompt: Prompt, cell: Cell) -> Answer | Unanswered:
        reply = await exchange.ask(self._text(prompt, cell), _texts(prompt))
        if not isinstance(reply, Reply) or reply.refused:
            return _failed(reply)
        reading = prompt.read(reply.text, cell.item, self.compat, cut=reply.cut)
        shares = distribution(reply.steps, unwrapped(read_reply(reply.text).text), prompt.answers)
        return Answer(reading.rating, reading.status, reply.text, shares, self._cut_at(reply))

    def _text(self, prompt: Prompt, *cells: Cell) -> str:
        return self._filled(prompt, cells, shortened(cells[0].text, self._settings.max_characters), plain)

    def _cut_at(self, reply: Reply) -> int | None:
        """Return the limit that ended a reply, if one did; a thought without its end counts as cut off."""
        return self.server.form.max_tokens if read_reply(reply.text, cut=reply.cut).ends_early else None


def _failed(reply: Reply | Unanswered) -> Answer | Unanswered:
    """Return what is stored of a request that a model refused, or that got no answer."""
    if isinstance(reply, Reply):
        return Answer(None, "refused", reply.text)
    if reply.passing:
        return reply
    if reply.filtered:
        return Answer(None, "refused", reply.reason)
    return Answer(None, "error", f"was rejected by the server, which {reply.reason}")


def shortened(text: str, limit: int) -> str:
    """The text's first `limit` characters at most, without a word that would be cut.

    Scripts without spaces are cut between any two characters, and so are words of more than a hundred.
    """
    if len(text) <= limit:
        return text
    part = text[: limit + 1]
    end = max(part.rfind(blank) for blank in " \n\t")
    return part[: end if end > max(0, limit - _LONGEST_WORD) else limit].rstrip()


def _is_read(result: Answer | Unanswered) -> TypeGuard[Answer]:
    """Whether a model wrote something that is read, and did not refuse or fail."""
    return isinstance(result, Answer) and result.status in {"ok", "unparsed"}


def _lacks_key(prompt: Prompt, call: Call) -> bool:
    """Whether a cell is not graded, since its item has no answer key and the prompt needs one."""
    return prompt.group == 1 and prompt.needs_key and not call[0].item.gold_answers


def _texts(prompt: Prompt) -> list[str]:
    return [answer for answer, _ in prompt.answers]


def _create(settings: GraderSection, root: Path) -> ServerGrader:
    missing = missing_for_servers()
    if missing:
        raise GraderError(f"the `openai` grader cannot run: {missing}")
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
    if server.form.structured and free:
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
