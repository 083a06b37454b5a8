"""A writer behind an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from trecexam.config import GraderSection
from trecexam.graders.base import Estimate, UngradedError
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.server.grader import shortened
from trecexam.graders.server.messages import Unanswered, plain
from trecexam.graders.server.model import Server
from trecexam.graders.writing.base import Fitted, Unwritten, WrittenText, naming

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

#: Tells a server that takes nothing from one that does not take a certain prompt.
_PROBE = "Write one question about the capital of France."


class ServerWriter:
    """Has a server write, several prompts at a time.

    Args:
        section: of trecexam.toml, that errors name.
    """

    environment = None
    is_here = False

    def __init__(self, server: Server, section: str) -> None:
        self.server, self._section = server, section
        self.meter = server.meter
        form, settings = server.form, server.settings
        self.model, self.new_tokens, self.seed = form.model, form.max_tokens, form.seed
        self._max_characters = settings.max_characters if isinstance(settings, GraderSection) else None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "writer": "openai",
            "model": self.model,
            # Which weights the server has under the model's name, in the user's words.
            "revision": self.server.settings.revision,
            "decode": self.server.form.identity(()),
            **({"max_characters": self._max_characters} if self._max_characters else {}),
        }

    def plain(self, text: str) -> str:
        return plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        limit = self._max_characters
        part = text if limit is None else shortened(text, limit)
        return Fitted(render(plain(part)), cut=len(part) < len(text))

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        from trecexam.graders.server.exchange import asked

        unanswered: list[str] = []
        with naming(self._section):
            # An answer is on disk before a prompt goes out in its place: see `ask_all`.
            batches = asked(
                self.server, (_PROBE, []), prompts, self._most, _written, then="to go on", gather=0
            )
            with closing(batches):
                for results in batches:
                    passing = [text for _, text in results if isinstance(text, Unanswered) and text.passing]
                    unanswered += (text.reason for text in passing)
                    yield [(prompt, _as_written(text)) for prompt, text in results if text not in passing]
            if unanswered:
                raise UngradedError(
                    f"{self.server.settings.base_url} gave no answer to {len(unanswered):,} prompts, which "
                    f"are sent again next time: it {unanswered[-1]}"
                )

    def _most(self, prompt: str) -> Usage:
        return Usage(1, guessed(f"{self.server.form.system}{prompt}"), self.new_tokens)

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        most = expected = Usage()
        for prompt in prompts:
            worst = self._most(prompt)
            most = most.plus(worst)
            tokens_out = self.meter.expected_out(worst.tokens_out, short=False)
            expected = expected.plus(worst._replace(tokens_out=tokens_out))
        return self.server.estimate(len(prompts), expected, most)


async def _written(exchange: Exchange, prompt: str) -> WrittenText | Unanswered:
    reply = await exchange.ask(prompt, [])
    if isinstance(reply, Unanswered):
        return reply
    if reply.refused:
        return Unanswered(f"refused: {reply.text[:200]}", filtered=True)
    return WrittenText(reply.text, reply.cut, reply.tokens_in, reply.tokens_out)


def _as_written(text: WrittenText | Unanswered) -> WrittenText | Unwritten:
    if isinstance(text, WrittenText):
        return text
    return Unwritten(f"gave no answer: it {text.reason}", refused=text.filtered)
