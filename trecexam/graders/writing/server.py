"""A writer behind an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from trecexam.config import GraderSection
from trecexam.graders.base import Estimate, UngradedError
from trecexam.graders.meter import Usage, guessed
from trecexam.graders.server.messages import plain, shortened
from trecexam.graders.server.model import Request, Server
from trecexam.graders.writing.base import Fitted, Unwritten, WrittenText, naming

if TYPE_CHECKING:
    from trecexam.graders.server.exchange import Exchange

#: Tells a server that takes nothing from one that does not take a certain prompt.
_PROBE = Request("Write one question about the capital of France.")


class ServerWriter:
    """Has a server write, several prompts at a time.

    Args:
        section: of trecexam.toml, that errors name.
    """

    environment = None
    is_here = False

    def __init__(self, server: Server, section: str) -> None:
        self.server, self._section = server, section
        self.meter, settings = server.meter, server.settings
        self.model, self.new_tokens, self.seed = str(settings.model), server.max_tokens, settings.seed
        self._max_characters = settings.max_characters if isinstance(settings, GraderSection) else None

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "writer": "openai",
            "model": self.model,
            # Which weights the server has under the model's name, in the user's words.
            "revision": self.server.settings.revision,
            "decode": self.server.identity(),
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
            # An answer is on disk before a prompt goes out in its place, see `Job`.
            batches = asked(self.server, _PROBE, prompts, self._most, _ask, then="to go on", gather=0)
            with closing(batches):
                for results in batches:
                    passing = [text for _, text in results if isinstance(text, Unwritten) and text.passing]
                    unanswered += (text.reason for text in passing)
                    yield [(prompt, _written(text)) for prompt, text in results if text not in passing]
            if unanswered:
                raise UngradedError(
                    f"{self.server.settings.base_url} gave no answer to {len(unanswered):,} prompts, which "
                    f"are sent again next time: it {unanswered[-1]}"
                )

    def _most(self, prompt: str) -> Usage:
        return Usage(1, guessed(f"{self.server.system}{prompt}"), self.new_tokens)

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        most = expected = Usage()
        for prompt in prompts:
            worst = self._most(prompt)
            most = most.plus(worst)
            tokens_out = self.meter.expected_out(worst.tokens_out, short=False)
            expected = expected.plus(worst._replace(tokens_out=tokens_out))
        return self.server.estimate(len(prompts), expected, most)


async def _ask(exchange: Exchange, prompt: str) -> WrittenText | Unwritten:
    return await exchange.ask(Request(prompt))


def _written(text: WrittenText | Unwritten) -> WrittenText | Unwritten:
    if isinstance(text, WrittenText):
        if not text.refused:
            return text
        text = Unwritten(f"refused: {text.text[:200]}", refused=True)
    return text._replace(reason=f"gave no answer: it {text.reason}")
