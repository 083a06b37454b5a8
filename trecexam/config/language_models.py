"""Settings that whatever asks a language model shares: which model, where, how, and for how much."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

#: Fields of a request that `extra` must not set: the budget, and what is noted of an item's origin, go by the
#: settings.
_OURS = frozenset((
    "model", "messages", "prompt", "stream", "n", "logprobs", "top_logprobs", "max_tokens",
    "max_completion_tokens", "temperature", "seed",
))  # fmt: skip
_VARIABLE = r"[A-Z_][A-Z0-9_]{0,63}"
_KEY = "(?:key|token|secret|password|authorization)"
_MAY_BE_A_KEY = (
    "may be a key: put it into an environment variable and write "
    'headers = { "NAME-OF-THE-HEADER" = "$VARIABLE" }'
)


class Section(BaseModel):
    """A section of trecexam.toml: unknown keys are refused."""

    # Built when a track is read, with the settings that contain the section.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


class LanguageModelSection(Section):
    """A language model in this process or behind a server.

    Attributes:
        server_tokens, local_tokens: the most tokens of an answer where `max_new_tokens` is not set: of a
            server, whose models may think, and of a model in this process.
    """

    server_tokens: ClassVar[int] = 2048
    local_tokens: ClassVar[int] = 512

    name: str | None = Field(None, description="What kind of model.")
    model: str | None = Field(None, description="A folder, a hub id, or what a server calls it.")
    revision: str | None = Field(
        None,
        examples=["main"],
        description="Revision of a hub model: a commit, tag or branch. openai: any word; change it when the "
        "server has other weights under the same name.",
    )
    device: str | None = Field(
        None, examples=["cuda"], description="cpu, cuda, cuda:1, mps. Unset: the best there is."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description='seq2seq, causal: "auto" is bfloat16 where the device computes in it, else float32. '
        'embedding: "auto" is float32; with "bfloat16" other cosines are stored.',
    )
    max_batch_tokens: int | None = Field(
        None,
        ge=1,
        examples=[16384],
        description="seq2seq, causal: tokens per batch, including padding. Unset: what suits the device.",
    )
    base_url: str | None = Field(
        None,
        examples=["http://localhost:8000/v1"],
        description="openai: where the server is, with the /v1 that most have.",
    )
    api: Literal["chat", "completions"] = Field(
        "chat", description='openai: "chat" completions, or plain "completions" (base models).'
    )
    key_env: str | None = Field(
        None,
        examples=["OPENAI_API_KEY"],
        description="openai: the environment variable that holds the key. Unset: no key is sent. Never write "
        "a key into this file.",
    )
    temperature: float = Field(
        0.0, ge=0, description="openai: randomness of the answers; some cloud models accept 1 only."
    )
    seed: int | None = Field(
        None,
        ge=-(2**63),
        lt=2**63,
        examples=[7],
        description="openai: seed of the server's random numbers. Unset: not sent.",
    )
    extra: dict[str, Any] = Field(
        {},
        description='openai: extra fields of a request, such as { reasoning_effort = "low" }.',
    )
    headers: dict[str, str] = Field(
        {},
        description='openai: more headers of each request: { "api-key" = "$AZURE_KEY" }. A value with '
        "$ is read from the environment.",
    )
    query: dict[str, str] = Field(
        {},
        description='openai: what follows "?" in the address, such as { api-version = "2025-04-01" }.',
    )
    concurrency: int | None = Field(
        None,
        ge=1,
        le=4096,
        examples=[16],
        description="openai: requests at a time. Unset: 64 where the server's /models names vllm or sglang, "
        "which batch them; else 8.",
    )
    requests_per_minute: int | None = Field(
        None, ge=1, examples=[500], description="openai: requests a minute at most, evenly spaced."
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, examples=[200000], description="openai: the same in tokens, input and output."
    )
    timeout: float = Field(120.0, gt=0, description="openai: seconds to wait for an answer.")
    retries: int = Field(
        5,
        ge=0,
        description="openai: how often a failed request is sent again, with growing pauses.",
    )
    price_in: float | None = Field(
        None,
        ge=0,
        examples=[0.15],
        description="openai: the price of a million input tokens, in any currency.",
    )
    price_out: float | None = Field(
        None, ge=0, examples=[0.6], description="openai: the price of a million output tokens."
    )
    budget: float | None = Field(
        None,
        ge=0,
        examples=[5.0],
        description="openai: stop before more than this is spent on the track. In [grader] it is one "
        "budget for all graders without their own, and for what the model writes: banks, exams, answers.",
    )
    budget_tokens: int | None = Field(
        None,
        ge=0,
        examples=[1000000],
        description="openai: the same in tokens, input and output.",
    )

    @field_validator("key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_VARIABLE, value):
            raise ValueError(
                "give the name of an environment variable, such as OPENAI_API_KEY, and never the key itself"
            )
        return value

    @field_validator("base_url")
    @classmethod
    def _address_alone(cls, value: str | None) -> str | None:
        if value is not None and not _is_address(value):
            raise ValueError(
                "give an address such as http://localhost:8000/v1, without a password or a key in it"
            )
        return None if value is None else value.rstrip("/")

    @field_validator("headers", "query")
    @classmethod
    def _no_secrets(cls, value: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for name, text in value.items():
            is_plain = text.isascii() and text.isprintable()
            if not is_plain or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
                raise ValueError(f"`{name}` or its value has characters that no address and no header has")
            is_variable = re.fullmatch(rf"\${_VARIABLE}", text) is not None
            is_read = is_variable and info.field_name == "headers"
            if not is_read and (is_variable or re.search(_KEY, name, re.I)):
                raise ValueError(f"`{name}` {_MAY_BE_A_KEY}")
        return value

    @field_validator("extra")
    @classmethod
    def _no_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("holds a value that JSON does not have (a date, a time, nan, inf)") from None
        if re.search(rf'"[^"]*{_KEY}":', text, re.I):
            raise ValueError(f"one of its fields {_MAY_BE_A_KEY}")
        if ours := _OURS & value.keys():
            raise ValueError(
                f"`{min(ours)}` is set by trecexam: see `max_new_tokens`, `temperature`, `seed`, `logprobs`"
            )
        return value


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        # Reading the port checks it.
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", value) is not None


class GeneratorSection(LanguageModelSection):
    """Who writes test banks and exams (`trecexam bank generate`, `exam generate`).

    Where neither `model` nor `base_url` is set here, what is not set is as in [grader], if that is a language
    model.
    """

    name: Literal["openai", "causal", "seq2seq"] | None = Field(
        None,
        examples=["openai"],
        description="Who writes banks and exams (`bank generate`, `exam generate`): openai, causal, seq2seq. "
        "Unset, and neither `model` nor `base_url` set: the language model of [grader], with its settings.",
    )
    model: str | None = Field(
        None,
        examples=["Qwen/Qwen3-8B"],
        description="openai: what the server calls it. causal, seq2seq: a folder or hub id.",
    )
    temperature: float = Field(0.0, ge=0, description="0 writes what is most probable; more draws at random.")
    local_tokens: ClassVar[int] = 1000
    max_new_tokens: int | None = Field(
        None,
        ge=1,
        examples=[4096],
        description="Tokens that an answer may have, thoughts too: all items of a query, or an exam "
        "question. Unset: 2,048 of a server; 1,000 of a model in this process.",
    )
