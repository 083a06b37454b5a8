"""A writer behind an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from trecexam.graders.base import Estimate, UngradedError, Usage
from trecexam.graders.server.exchange import Exchange, Unanswered
from trecexam.graders.server.grader import shortened
from trecexam.graders.server.messages import Form, plain
from trecexam.graders.server.meter import Meter, Prices, guessed
from trecexam.graders.server.secret import Secret
from trecexam.graders.server.session import ServerAccess, asked
from trecexam.graders.writing.base import Fitted, Unwritten, WrittenText, naming

#: Tells a server that takes nothing from one that does not take a certain prompt.
_PROBE = "Write one question about the capital of France."


class ServerWriter:
    """Has a server write, several prompts at a time.

    Args:
        revision: which weights the server has under the model's name, in the user's words.
        max_characters: of the text in a prompt that `fitted` makes; None for no limit.
        section: of trecexam.toml, that errors name.
    """

    def __init__(
        self,
        server: ServerAccess,
        form: Form,
        *,
        revision: str | None,
        prices: Prices,
        max_characters: int | None = None,
        section: str = "grader",
    ) -> None:
        self.server = server
        self._section = section
        self.form = form
        self._revision = revision
        self._max_characters = max_characters
        self.meter = Meter(prices)
        self.environment = None

    @property
    def model(self) -> str:
        return self.form.model

    @property
    def new_tokens(self) -> int:
        return self.form.max_tokens

    @property
    def seed(self) -> int | None:
        return self.form.seed

    @property
    def identity(self) -> Mapping[str, Any]:
        return {
            "writer": "openai",
            "model": self.form.model,
            "revision": self._revision,
            "decode": self.form.identity(()),
            **({"max_characters": self._max_characters} if self._max_characters else {}),
        }

    @property
    def paid(self) -> bool:
        return True

    @property
    def used(self) -> Usage:
        return self.meter.used

    def plain(self, text: str) -> str:
        return plain(text)

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        limit = self._max_characters
        part = text if limit is None else shortened(text, limit)
        return Fitted(render(plain(part)), cut=len(part) < len(text))

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        unanswered: list[str] = []
        with naming(self._section):
            # An answer is on disk before a prompt goes out in its place: see `ask_all`.
            batches = asked(
                self.server,
                self.form,
                self.meter,
                (_PROBE, []),
                prompts,
                self._most,
                self._written,
                then="to go on",
                gather=0,
            )
            with closing(batches):
                for results in batches:
                    passing = [text for _, text in results if isinstance(text, Unanswered) and text.passing]
                    unanswered += (text.reason for text in passing)
                    yield [(prompt, _as_written(text)) for prompt, text in results if text not in passing]
            if unanswered:
                raise UngradedError(
                    f"{self.server.base_url} gave no answer to {len(unanswered):,} prompts, which are sent "
                    f"again next time: it {unanswered[-1]}"
                )

    async def _written(self, exchange: Exchange, secret: Secret, prompt: str) -> WrittenText | Unanswered:
        reply = await exchange.ask(prompt, [])
        if isinstance(reply, Unanswered):
            return reply
        # A server that says back what it was sent must not get the key into a file.
        text = secret.hidden(reply.text)
        if reply.refused:
            return Unanswered(f"refused: {text[:200]}", filtered=True)
        return WrittenText(text, reply.cut, reply.tokens_in, reply.tokens_out)

    def _most(self, prompt: str) -> Usage:
        return Usage(1, guessed(f"{self.form.system}{prompt}"), self.form.max_tokens)

    def estimate(self, prompts: Sequence[str], before: Usage) -> Estimate:
        self.meter.before = before
        most = expected = Usage()
        for prompt in prompts:
            worst = self._most(prompt)
            most = most.plus(worst)
            tokens_out = self.meter.expected_out(worst.tokens_out, short=False)
            expected = expected.plus(worst._replace(tokens_out=tokens_out))
        return Estimate(
            len(prompts),
            expected.tokens_in,
            expected.tokens_out,
            most.tokens_out,
            self.cost(expected),
            self.cost(most),
            calls=len(prompts),
            calls_at_most=len(prompts),
        )

    def cost(self, used: Usage) -> float | None:
        return self.meter.prices.cost(used)

    def start_from(self, before: Usage) -> None:
        self.meter.before = before


def _as_written(text: WrittenText | Unanswered) -> WrittenText | Unwritten:
    if isinstance(text, WrittenText):
        return text
    return Unwritten(f"gave no answer: it {text.reason}", refused=text.filtered)
