"""The `openai` grader: a model behind an OpenAI-compatible server (vLLM, llama.cpp, a cloud API)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from trecexam.config import GeneratorSection, GraderSection, LanguageModelSection
from trecexam.errors import GraderError
from trecexam.graders.base import Factory
from trecexam.graders.prompts import chosen_prompts
from trecexam.graders.prompts.prompted import prompted_reading
from trecexam.graders.server.grader import ServerGrader, check_structured
from trecexam.graders.server.messages import Form, Structured
from trecexam.graders.server.meter import Pace, Prices
from trecexam.graders.server.session import ServerAccess
from trecexam.packages import install, missing_packages

#: What must be installed before a server can be asked; "" where nothing is missing.
missing_for_servers = partial(missing_packages, ("httpx2", "nltk", "tenacity"), install("openai"))


def server_of(settings: LanguageModelSection, *, logprobs: bool) -> ServerAccess:
    """The server that settings name.

    Raises:
        GraderError: they do not say where it is, or which model of it is meant.
    """
    if settings.base_url is None or settings.model is None:
        lacks = "`base_url`" if settings.base_url is None else "`model`"
        raise GraderError(
            f"`openai` needs {lacks} in [grader] of trecexam.toml: where the server is and what it calls "
            "its model"
        )
    return ServerAccess(
        settings.base_url,
        settings.key_env,
        settings.concurrency,
        settings.timeout,
        settings.retries,
        logprobs,
        settings.headers,
        settings.query,
        Pace(settings.requests_per_minute, settings.tokens_per_minute),
    )


def prices_of(settings: LanguageModelSection) -> Prices:
    """What a server takes, and how much may be spent.

    Raises:
        GraderError: there is a budget and no price.
    """
    if settings.budget is not None and (settings.price_in is None or settings.price_out is None):
        raise GraderError("`budget` in [grader] needs `price_in` and `price_out`; `budget_tokens` needs none")
    return Prices(settings.price_in, settings.price_out, settings.budget, settings.budget_tokens)


def form_of(settings: GeneratorSection | GraderSection, structured: Structured | None = None) -> Form:
    """How to call the server that settings name; `server_of` has seen that they say which model."""
    assert settings.model is not None
    return Form(
        settings.api,
        settings.model,
        settings.max_new_tokens or settings.server_tokens,
        settings.temperature,
        settings.seed,
        structured,
        settings.extra,
    )


def _create(settings: GraderSection, root: Path) -> ServerGrader:
    missing = missing_for_servers()
    if missing:
        raise GraderError(f"the `openai` grader cannot run: {missing}")
    server = server_of(settings, logprobs=settings.logprobs)
    if settings.decode is not None:
        raise GraderError(
            "`decode` in [grader] is for models in this process; `structured` holds a server's to the "
            "permitted answers"
        )
    first = settings.passage_first is None or settings.passage_first
    prompts = chosen_prompts(settings, root, passage_first=first)
    form = form_of(settings, None if settings.structured == "none" else settings.structured)
    check_structured(form, prompts)
    form = replace(form, system=prompts[0].system)
    if prompts[0].group > 1:
        # Log-probabilities of labels in a list are no single tokens.
        server = replace(server, logprobs=False)
    return ServerGrader(
        server,
        form,
        prompts,
        revision=settings.revision,
        max_characters=settings.max_characters,
        compat=settings.compat,
        prices=prices_of(settings),
    )


FACTORY = Factory(
    summary="a model behind an OpenAI-compatible server: vLLM, llama.cpp, TGI, a cloud API",
    missing=missing_for_servers,
    create=_create,
    standard=True,
    runs_model=False,
    reading=prompted_reading,
)
