"""Sections of trecexam.toml: every setting has its unit and default here; `init` writes them out.

A setting is described by the text below it.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
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
Rule = Literal["latest", "majority", "adjudicated"]
LanguageModel = Literal["openai", "causal", "seq2seq"]
UnparsedPolicy = Literal["zero", "skip", "seed"]


class Section(BaseModel):
    """A section of trecexam.toml: unknown keys are refused.

    Attributes:
        changes: "values" in out/; the "work" of an update, its time and order; or "nothing" of an update.
    """

    changes: ClassVar[Literal["values", "work", "nothing"]] = "values"
    # Built when a track is read, with the settings that contain the section.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)

    @property
    def is_cluster(self) -> bool:
        """True for the settings of a cluster that does the work of models."""
        return False


@cache
def descriptions(section: type[BaseModel]) -> Mapping[str, str]:
    """Return what each setting of a section does: the text below it, or the `description` of its field.

    pydantic's `use_attribute_docstrings` reads sources at each import, which takes 25 ms.
    """
    texts = {key: field.description or "" for key, field in section.model_fields.items()}
    for kind in reversed(section.__mro__):
        if issubclass(kind, Section):
            (definition,) = ast.parse(inspect.getsource(kind)).body
            assert isinstance(definition, ast.ClassDef)
            for setting, text in pairwise(definition.body):
                match setting, text:
                    case ast.AnnAssign(ast.Name(key)), ast.Expr(ast.Constant(str(said))):
                        texts[key] = " ".join(said.split())
    return texts


class TrackSection(Section):
    """Settings of the track. Paths are relative to the folder of trecexam.toml."""

    queries: str | None = Field(None, examples=["queries.tsv"])
    """Queries: TSV, JSONL, JSON, TREC topics. Unset: queries.tsv, .jsonl, .json or .xml, else the bank's
    own."""
    passages: str | None = Field(None, examples=["passages.jsonl.gz"])
    """Passages, JSONL, may be .gz. Unset: passages.jsonl or passages.jsonl.gz."""
    bank: list[str] | None = Field(None, examples=[["bank.questions.jsonl", "bank.nuggets.jsonl"]])
    """Test bank files, JSONL, may be .gz; * is allowed. Unset: bank.*.jsonl and .gz."""
    qrels: str | None = Field(None, examples=["qrels.txt"])
    """Official judgments, optional. Unset: qrels.txt if there."""
    official_leaderboard: str | None = Field(None, examples=["official_leaderboard.json"])
    """Official ranking, optional: {"run": rank} JSON or `run<TAB>rank` TSV, rank 1 is best; or values of
    measures, as ir_measures and TREC AutoJudge write them. Another track's out/leaderboard.tsv is one. Unset:
    official_leaderboard.json, .tsv, .txt or .jsonl if there."""
    dataset: str | None = Field(None, examples=["msmarco-passage/trec-dl-2019/judged"])
    """An ir_datasets id; replaces queries, passages and qrels not given as files."""
    runs: str = "runs"
    """The drop folder, searched with its sub-folders."""
    pool: Literal["text", "citations", "both"] = "text"
    """Which texts of a generated response are graded: its own text in passages, the passages that it cites,
    or both."""
    unit: Literal["passage", "response"] = "passage"
    """Grade a response's own text passage by passage, or the response as a whole, as TREC RAG assigns
    nuggets. With whole responses, ranked runs are left out."""
    facets: bool = False
    """The bank's query ids are query/facet, as in TREC CAR: an item belongs to the query, the part before the
    first /. `trecexam export qrels --by facet` gives labels by facet."""
    depth: int = Field(20, ge=1)
    """Passages of each run and query that enter the pool (ranks)."""
    pool_judged: bool = False
    """Also pool passages with an official judgment if their text is there: they are graded and labelled,
    though no run has them."""
    exclude_query_document: bool = False
    """Leave a query's own document, which has the query's id, out of runs and pool, as BEIR does for ArguAna,
    Quora and CQADupStack."""
    min_text: int = Field(1, ge=1)
    """Passages with fewer characters than this are not graded."""
    truncate: int | None = Field(None, ge=1, examples=[400])
    """Words of a generated response that count; what follows is cut. Unset: all."""
    strict: bool = False
    """Reject a whole file of generated responses for one bad line. false: skip that line and name it in
    out/rejected.tsv."""

    @field_validator("unit")
    @classmethod
    def _of_own_text(cls, value: str, info: ValidationInfo) -> str:
        if value == "response" and info.data.get("pool") == "citations":
            raise ValueError(
                'no text of a response is graded with `pool` = "citations": set that to "text" or "both", or '
                "leave `unit` out"
            )
        return value


class ScoresSection(Section):
    """Settings by which grades become labels and scores."""

    min_rating: int = Field(4, ge=1, le=5)
    """From this rating on, a passage reaches an item. Unset: 4 of 0..5; less where a prompt's scale is
    shorter."""
    label: Literal["max", "count", "expected"] = "max"
    """A passage's label: its best rating ("max"), or how many items it reaches ("count"). "expected": as
    "max", but the gain of nDCG is the expected best rating, by the grader's probabilities."""
    min_answers: int = Field(1, ge=1)
    """Items a passage must reach: the label is its best rating on so many items."""
    unparsed: UnparsedPolicy = "skip"
    """An answer with no rating in it counts as 0 ("zero"), as 1 ("seed"), or gives no rating ("skip"): a
    passage without any is not relevant. Where no answer has a rating, there are no scores."""
    measures: list[str] | None = Field(
        None, min_length=1, examples=[["P(rel=4)@20", "nDCG@10", "Cover(rel=4)@20"]]
    )
    """As ir_measures prints them; the first sorts the leaderboard. Unset: by depth, P first; Cover of
    generated responses alone, A and V where the bank has importance; `ragval` has its own."""
    official_measures: list[str] | None = Field(None, min_length=1, examples=[["nDCG@10", "AP(rel=2)"]])
    """Measures on the official judgments. Unset: nDCG@10, and AP and P with min_relevant."""
    min_relevant: int = Field(1, ge=1)
    """A passage is relevant from this official label on."""
    average: Literal["all", "answered"] = "all"
    """Means are over all queries ("all", as trec_eval -c), or over those a run answered ("answered", as the
    published Rubric workbench; flatters runs that skip queries)."""


class LanguageModelSection(Section):
    """A language model in this process or behind a server.

    Attributes:
        server_tokens, local_tokens: the most tokens of an answer where `max_new_tokens` is not set: of a
            server, whose models may think, and of a model in this process.
    """

    server_tokens: ClassVar[int] = 2048
    local_tokens: ClassVar[int] = 512

    name: str | None = None
    """What kind of model."""
    model: str | None = None
    """A folder, a hub id, or what a server calls it."""
    revision: str | None = Field(None, examples=["main"])
    """Revision of a hub model: a commit, tag or branch. openai: any word; change it when the server has other
    weights under the same name."""
    device: str | None = Field(None, examples=["cuda"])
    """cpu, cuda, cuda:1, mps. Unset: the best there is."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """seq2seq, causal: "auto" is bfloat16 where the device computes in it, else float32. embedding: "auto" is
    float32; with "bfloat16" other cosines are stored."""
    max_batch_tokens: int | None = Field(None, ge=1, examples=[16384])
    """seq2seq, causal: tokens per batch, including padding. Unset: what suits the device."""
    base_url: str | None = Field(None, examples=["http://localhost:8000/v1"])
    """openai: where the server is, with the /v1 that most have."""
    api: Literal["chat", "completions"] = "chat"
    """openai: "chat" completions, or plain "completions" (base models)."""
    key_env: str | None = Field(None, examples=["OPENAI_API_KEY"])
    """openai: the environment variable that holds the key. Unset: no key is sent. Never write a key into this
    file."""
    temperature: float = Field(0.0, ge=0)
    """openai: randomness of the answers; some cloud models accept 1 only."""
    seed: int | None = Field(None, ge=-(2**63), lt=2**63, examples=[7])
    """openai: seed of the server's random numbers. Unset: not sent."""
    extra: dict[str, Any] = Field({})
    """openai: extra fields of a request, such as { reasoning_effort = "low" }."""
    headers: dict[str, str] = Field({})
    """openai: more headers of each request: { "api-key" = "$AZURE_KEY" }. A value with $ is read from the
    environment."""
    query: dict[str, str] = Field({})
    """openai: what follows "?" in the address, such as { api-version = "2025-04-01" }."""
    concurrency: int | None = Field(None, ge=1, le=4096, examples=[16])
    """openai: requests at a time. Unset: 64 where the server's /models names vllm or sglang, which batch
    them; else 8."""
    requests_per_minute: int | None = Field(None, ge=1, examples=[500])
    """openai: requests a minute at most, evenly spaced."""
    tokens_per_minute: int | None = Field(None, ge=1, examples=[200000])
    """openai: the same in tokens, input and output."""
    timeout: float = Field(120.0, gt=0)
    """openai: seconds to wait for an answer."""
    retries: int = Field(5, ge=0)
    """openai: how often a failed request is sent again, with growing pauses."""
    price_in: float | None = Field(None, ge=0, examples=[0.15])
    """openai: the price of a million input tokens, in any currency."""
    price_out: float | None = Field(None, ge=0, examples=[0.6])
    """openai: the price of a million output tokens."""
    budget: float | None = Field(None, ge=0, examples=[5.0])
    """openai: stop before more than this is spent on the track. In [grader] it is one budget for all graders
    without their own, and for what the model writes: banks, exams, answers."""
    budget_tokens: int | None = Field(None, ge=0, examples=[1000000])
    """openai: the same in tokens, input and output."""

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
        if value is None:
            return None
        with suppress(ValueError):
            parts = urlsplit(value)
            # Reading the port checks it.
            is_named = bool(parts.hostname) and parts.port != 0
            if is_named and re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", value):
                return value.rstrip("/")
        raise ValueError(
            "give an address such as http://localhost:8000/v1, without a password or a key in it"
        )

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


class GraderSection(LanguageModelSection):
    """Settings of a grader. Only those that can change an answer enter the grader's identity."""

    name: str = "embedding"
    """One of `trecexam graders`. erag and ragval take openai's settings where base_url is set, else those of
    causal and seq2seq."""
    model: str | None = Field(None, examples=["google/flan-t5-large"])
    """A folder or hub id. embedding: a sentence-transformers model (unset: the extra 'offline'). seq2seq: a
    T5 (unset: google/flan-t5-large). causal: a decoder-only model. openai: what the server calls it. erag: as
    one of these three. recorded: which model's grades to take, where the recording has several."""
    prompt: str | None = Field(None, examples=["QuestionSelfRatedUnanswerablePromptWithChoices"])
    """seq2seq, causal, openai: one of `trecexam graders --prompts`, or a .toml or .jinja file here (unset:
    the paper's self-rating of questions and of nuggets). recorded: which prompt's grades to take. erag: a
    file with {query} and {document} (unset: ours)."""
    metric: str | None = Field(None, examples=["f1"])
    """erag: how an output is compared with the gold outputs: em, f1, rouge-l, accuracy, or a function of your
    own as module:function, (output, gold outputs) -> 0..1. Unset: em."""
    decode: Literal["choices", "beam"] | None = Field(None, examples=["beam"])
    """seq2seq, causal: "choices" scores each permitted answer; "beam" is the papers' beam search, free text.
    Unset: choices, where the prompt has permitted answers."""
    beams: int = Field(5, ge=1)
    """Beams of `decode = "beam"`."""
    max_new_tokens: int | None = Field(None, ge=1, examples=[4096])
    """Tokens that an answer may have, thoughts too: `decode = "beam"`, openai, erag. Unset: 2,048 of a
    server; 512 of a model in this process. Raised for a server, only answers that were cut off are asked
    again."""
    max_length: int | None = Field(None, ge=16, examples=[512])
    """seq2seq, causal: tokens of a prompt; longer passages are cut. Unset: what the model takes (T5: what its
    files name, mostly 512)."""
    passage_first: bool | None = Field(None, examples=[True])
    """Put the passage before the question, where the prompt allows. Unset: causal and openai do, so that a
    passage is read once for all its questions; seq2seq does not, as published."""
    compat: Literal["workbench"] | None = Field(None, examples=["workbench"])
    """Read answers as the Rubric workbench's released code does, not as its paper says."""
    recorded: str | None = Field(None, examples=["graded.jsonl.gz"])
    """recorded: a Rubric graded pool, a `trecexam export grades` file, or qrels; may be .gz."""
    cut_points: list[float] | None = Field(None, examples=[[0.52, 0.56, 0.59, 0.63, 0.74]])
    """embedding: the five cosines from which the rating is 1, 2, 3, 4, 5; of support the two from which it is
    partial, and full. Unset: fitted. With your own there are no probabilities."""
    citations: Literal["first", "all"] = "first"
    """support: of the passages that a sentence cites, grade the "first", as TREC RAG 2024 did, or "all"."""
    structured: Literal["json_schema", "choice", "none"] | None = Field(None, examples=["json_schema"])
    """openai: restrict the model to the prompt's permitted answers, by a JSON schema or by "choice" (vLLM
    0.12 or newer, SGLang; NuggetAssign: to a list of them). Unset: it writes free text, which is parsed.
    ragval: a server is held to a JSON object of two scores, unless this is "none"."""
    logprobs: bool = True
    """openai: ask for the probabilities of the permitted answers, where the server has them."""
    max_characters: int = Field(20_000, ge=1)
    """openai: characters of a passage; longer ones are cut at a word."""

    @field_validator("cut_points")
    @classmethod
    def _rising(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and (len(value) not in (2, 5) or sorted(value) != value):
            raise ValueError(
                "give five cosines in rising order, for the ratings 1, 2, 3, 4, 5; for support two, for "
                "partial and full"
            )
        return value


_TRACK: Any = TrackSection.model_fields


class NamedGrader(GraderSection, ScoresSection):
    """A section of one of several graders: what differs from [track], [grader] and [scores]."""

    kind: str | None = Field(None, examples=["rubric"])
    """What is graded: rubric, nuggets, relevance, support. Unset: what the section's name, or its prompt,
    says."""
    people: str | None = Field(None, examples=["rubric"])
    """Take people's ratings from the grader of this name, which asks about the same. Unset:
    overrides.NAME.tsv; of the one named rubric overrides.tsv."""
    runs: Literal["all", "responses", "ranked"] = "all"
    """Which runs it looks at: "all", generated "responses" alone, or "ranked" lists alone."""
    write_bank: str | None = Field(None, examples=["nuggetizer"])
    """`watch` has the language model write the bank where there is none, as `bank generate` does with this
    prompt: nuggetizer, questions, nuggets or another. Unset: it writes none."""
    bank: list[str] | None = _TRACK["bank"]
    qrels: str | None = _TRACK["qrels"]
    official_leaderboard: str | None = _TRACK["official_leaderboard"]
    depth: int = _TRACK["depth"]
    pool: Literal["text", "citations", "both"] = _TRACK["pool"]
    unit: Literal["passage", "response"] = _TRACK["unit"]
    pool_judged: bool = _TRACK["pool_judged"]


class GeneratorSection(LanguageModelSection):
    """The model that writes test banks and exams (`trecexam bank generate`, `exam generate`).

    Where neither `model` nor `base_url` is set here, what is not set is as in [grader], if that is a language
    model.
    """

    changes = "nothing"
    name: LanguageModel | None = Field(None, examples=["openai"])
    """Who writes banks and exams (`bank generate`, `exam generate`): openai, causal, seq2seq. Unset, and
    neither `model` nor `base_url` set: the language model of [grader], with its settings."""
    model: str | None = Field(None, examples=["Qwen/Qwen3-8B"])
    """openai: what the server calls it. causal, seq2seq: a folder or hub id."""
    temperature: float = Field(0.0, ge=0)
    """0 writes what is most probable; more draws at random."""
    local_tokens: ClassVar[int] = 1000
    max_new_tokens: int | None = Field(None, ge=1, examples=[4096])
    """Tokens that an answer may have, thoughts too: all items of a query, or an exam question. Unset: 2,048
    of a server; 1,000 of a model in this process."""


class JudgingSection(Section):
    """Settings of judging: what assessors judge, and which of several people's ratings counts."""

    scale: list[str] | None = Field(
        None,
        min_length=2,
        max_length=6,
        examples=[["not relevant", "related", "highly relevant", "perfectly relevant"]],
    )
    """The meanings of the judgments 0, 1, 2, ... of a whole passage. Judgments are stored in judgments.tsv
    and change no label of the grader. Unset: the scale of the official judgments, without any that of the
    grader."""
    guidelines: str | None = Field(None, examples=["guidelines.md"])
    """Markdown file that assessors see next to each passage."""
    rule: Rule = "latest"
    """Which rating of a cell counts if several people rated it: the "latest"; the most frequent of each
    person's last ("majority"; the lowest in a tie); or the one on which all agree, else that of the person
    who decided between them ("adjudicated")."""
    whole_passage: bool | None = Field(None, examples=[True])
    """Assessors judge passages as a whole. Unset: where there is a scale, or no items."""
    reason: bool = False
    """Assessors give a reason for each judgment."""

    @field_validator("scale")
    @classmethod
    def _distinct(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (len(set(value)) < len(value) or not all(text.strip() for text in value)):
            raise ValueError("each step has its own name")
        return value


class CellsSection(Section):
    """The order in which cells are graded. Does not change any answer."""

    changes = "work"
    order: Literal["useful", "bank"] | None = Field(None, examples=["bank"])
    """"useful" grades first what moves the leaderboard most: passages at high ranks of many runs, on their
    most promising items; "bank" goes by query, passage and item. Unset: useful where a language model is
    asked."""
    outputs_every: float = Field(60.0, gt=0)
    """With order = "useful": seconds between outputs that are written during grading, and marked as partial.
    Writing them takes at most a twentieth of the time."""


class WatchSection(Section):
    """The daemon's patience."""

    changes = "work"
    settle: float = Field(2.0, ge=0)
    """Read a file after this many seconds without a change."""
    poll: float = Field(5.0, gt=0)
    """Seconds between looks at the folder."""


class ReportPageSection(Section):
    """The report page, for people."""

    write: bool = True
    """Write out/report.html and out/plots/ at each update. false removes them."""
    pdf: bool = False
    """Write each plot as PDF too, beside SVG. `trecexam plot` does it for a paper."""
    title: str = "Evaluation report"
    """The title of the report. `trecexam init` writes the name of the folder into it."""
    baseline: str | None = None
    """The run that the report compares all others with."""
