"""trecexam.toml -> TrackConfig. Every field has its unit and default here; `init` writes them out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from trecexam.errors import ConfigError

CONFIG_NAME = "trecexam.toml"
UnparsedPolicy = Literal["zero", "skip", "seed"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TrackSection(_Section):
    """What belongs to the track. Paths are relative to the folder of trecexam.toml."""

    queries: str | None = Field(
        None,
        examples=["queries.tsv"],
        description="Queries: TSV, JSONL, JSON, TREC topics. Unset: queries.tsv, .jsonl, .json or .xml, else "
        "the bank's own.",
    )
    passages: str | None = Field(
        None,
        examples=["passages.jsonl.gz"],
        description="Passages, JSONL, may be .gz. Unset: passages.jsonl or passages.jsonl.gz.",
    )
    bank: list[str] | None = Field(
        None,
        examples=[["bank.questions.jsonl", "bank.nuggets.jsonl"]],
        description="Test bank files, JSONL, may be .gz; * is allowed. Unset: bank.*.jsonl and .gz.",
    )
    qrels: str | None = Field(
        None, examples=["qrels.txt"], description="Official judgments, optional. Unset: qrels.txt if there."
    )
    official_leaderboard: str | None = Field(
        None,
        examples=["official_leaderboard.json"],
        description='Official ranking, optional: {"run": rank} JSON or `run<TAB>rank` TSV, rank 1 is best. '
        "Unset: official_leaderboard.json or .tsv if there.",
    )
    dataset: str | None = Field(
        None,
        examples=["msmarco-passage/trec-dl-2019/judged"],
        description="An ir_datasets id; stands in for queries, passages and qrels not given as files.",
    )
    runs: str = Field("runs", description="The drop folder, searched with its sub-folders.")
    pool: Literal["text", "citations", "both"] = Field(
        "text",
        description="What of a generated response is graded: its own text in passages, the passages that it "
        "cites, or both.",
    )
    depth: int = Field(20, ge=1, description="Passages of each run and query that enter the pool (ranks).")
    min_text: int = Field(1, ge=1, description="Passages with fewer characters than this are not graded.")


class GraderSection(_Section):
    """Who grades, and with what. Only settings that can change an answer enter the grader's identity."""

    name: str = Field("embedding", description="One of `trecexam graders`.")
    model: str | None = Field(
        None,
        examples=["google/flan-t5-large"],
        description="A folder or hub id. embedding: a sentence-transformers model (unset: the extra "
        "'offline'). seq2seq: a T5 (unset: google/flan-t5-large). causal: a decoder-only model. openai: what "
        "the server calls it. recorded: which model's grades to take, where the recording has several.",
    )
    revision: str | None = Field(
        None,
        examples=["main"],
        description="Revision of a hub model: a commit, tag or branch. openai: any word; change it when the "
        "server has other weights under the same name.",
    )
    prompt: str | None = Field(
        None,
        examples=["QuestionSelfRatedUnanswerablePromptWithChoices"],
        description="seq2seq, causal, openai: one of `trecexam graders --prompts`, or a .toml or .jinja file "
        "here (unset: the paper's self-rating of questions and of nuggets). recorded: which prompt's grades "
        "to take.",
    )
    decode: Literal["choices", "beam"] | None = Field(
        None,
        examples=["beam"],
        description='seq2seq, causal: "choices" scores each permitted answer; "beam" is the papers\' beam '
        "search, free text. Unset: choices, where the prompt has permitted answers.",
    )
    beams: int = Field(5, ge=1, description='Beams of `decode = "beam"`.')
    max_new_tokens: int = Field(
        512, ge=1, description='Tokens that an answer may have: `decode = "beam"`, openai.'
    )
    max_length: int | None = Field(
        None,
        ge=16,
        examples=[512],
        description="seq2seq, causal: tokens of a prompt; longer passages are cut. Unset: what the model "
        "takes (T5: 512).",
    )
    passage_first: bool | None = Field(
        None,
        examples=[True],
        description="Put the passage before the question, where the prompt allows. Unset: causal and "
        "openai do, so that a passage is read once for all its questions; seq2seq does not, as published.",
    )
    compat: Literal["workbench"] | None = Field(
        None,
        examples=["workbench"],
        description="Read answers as the Rubric workbench's released code does, not as its paper says.",
    )
    recorded: str | None = Field(
        None,
        examples=["graded.jsonl.gz"],
        description="recorded: a Rubric graded pool or a `trecexam export grades` file, may be .gz.",
    )
    cut_points: list[float] | None = Field(
        None,
        examples=[[0.52, 0.56, 0.59, 0.63, 0.74]],
        description="embedding: the five cosines from which the rating is 1, 2, 3, 4, 5. Unset: fitted.",
    )
    device: str | None = Field(
        None, examples=["cuda"], description="cpu, cuda, cuda:1, mps. Unset: the best there is."
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description='seq2seq, causal: "auto" is bfloat16 where the device computes in it, else float32.',
    )
    max_batch_tokens: int | None = Field(
        None,
        ge=1,
        examples=[16384],
        description="seq2seq, causal: tokens of a batch, padding counted. Unset: what suits the device.",
    )
    batch_size: int = Field(64, ge=1, description="embedding: passages embedded at once.")
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
        0.0, ge=0, allow_inf_nan=False, description="openai: some cloud models take 1 alone."
    )
    seed: int | None = Field(
        None, examples=[7], description="openai: seed of the server's random numbers. Unset: not sent."
    )
    structured: Literal["json_schema", "choice"] | None = Field(
        None,
        examples=["json_schema"],
        description="openai: hold the model to the prompt's permitted answers, by a JSON schema or by vLLM's "
        '"choice". Unset: it writes what it likes, which is read.',
    )
    logprobs: bool = Field(
        True,
        description="openai: ask for the probabilities of the permitted answers, where the server has them.",
    )
    max_characters: int = Field(
        20_000, ge=1, description="openai: characters of a passage; longer ones are cut at a word."
    )
    extra: dict[str, Any] = Field(
        {},
        description='openai: more fields of a request, such as { reasoning_effort = "low" }.',
    )
    concurrency: int = Field(8, ge=1, le=4096, description="openai: requests at a time.")
    timeout: float = Field(120.0, gt=0, allow_inf_nan=False, description="openai: seconds for one answer.")
    retries: int = Field(
        5,
        ge=0,
        description="openai: how often a request that failed is sent again, waiting longer each time.",
    )
    price_in: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        examples=[0.15],
        description="openai: money for a million tokens in, in any currency.",
    )
    price_out: float | None = Field(
        None, ge=0, allow_inf_nan=False, examples=[0.6], description="openai: money for a million tokens out."
    )
    budget: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        examples=[5.0],
        description="openai: grading stops before this grader has cost so much money on this track.",
    )
    budget_tokens: int | None = Field(
        None,
        ge=0,
        examples=[1000000],
        description="openai: grading stops before this grader has used so many tokens, in and out, on this "
        "track.",
    )

    @field_validator("cut_points")
    @classmethod
    def _five_rising(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and (len(value) != 5 or sorted(value) != value):
            raise ValueError("give five cosines in rising order, for the ratings 1, 2, 3, 4, 5")
        return value

    @field_validator("key_env")
    @classmethod
    def _name_of_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", value):
            raise ValueError(
                "give the name of an environment variable, such as OPENAI_API_KEY, and never the key itself"
            )
        return value

    @field_validator("base_url")
    @classmethod
    def _address_alone(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#@]*)?", value):
            raise ValueError(
                "give an address such as http://localhost:8000/v1, without a password or a key in it"
            )
        return None if value is None else value.rstrip("/")

    @field_validator("extra")
    @classmethod
    def _no_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise ValueError("holds what JSON cannot say (a date, a time, nan, inf)") from None
        if re.search(r'"[^"]*(key|token|secret|password|authorization)":', text, re.I):
            raise ValueError("holds what may be a key: keys are read from the variable that `key_env` names")
        ours = {"model", "messages", "prompt", "stream", "n", "logprobs", "top_logprobs"} & value.keys()
        if ours:
            raise ValueError(f"`{min(ours)}` is set by trecexam")
        return value


class RaySection(_Section):
    """A Ray cluster whose workers do the grading; grades and their keys are the same with it and without."""

    address: str | None = Field(
        None,
        examples=["auto"],
        description='"auto": the Ray cluster that this machine belongs to; or HOST:PORT of its head. Unset: '
        "models run in this process. openai and recorded run no model and do not need it.",
    )
    workers: int | None = Field(
        None,
        ge=1,
        examples=[8],
        description="Workers at most. Unset: one per GPU of the cluster; where it has none, as many as its "
        "CPUs allow.",
    )
    gpus_per_worker: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        examples=[1],
        description="GPUs of a worker; 0.5 lets two share one. Unset: 1, or 0 where the cluster has none.",
    )
    cpus_per_worker: float = Field(
        1, ge=0, allow_inf_nan=False, description="CPUs of a worker, and its threads where it has no GPU."
    )
    wait: float = Field(
        30.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds without any worker after which grading ends for now; `watch` tries again each "
        "minute.",
    )
    batch_seconds: float = Field(
        10.0,
        gt=0,
        allow_inf_nan=False,
        description="Seconds of work that go to a worker at a time, and that are done again when it dies.",
    )

    @field_validator("address")
    @classmethod
    def _address_of_a_cluster(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(
            r"auto|[^\s/:@]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}", value
        ):
            raise ValueError(
                'give "auto", or HOST:PORT as `ray start` says it; this machine must belong to the cluster, '
                "so that ray:// is not taken"
            )
        return value

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_a_part(cls, value: float | None) -> float | None:
        if value is not None and value > 1 and value != int(value):
            raise ValueError("give a part of one GPU, or a whole number")
        return value


class ScoresSection(_Section):
    """How grades become labels and scores."""

    min_rating: int = Field(
        4,
        ge=1,
        le=5,
        description="From this rating on, a passage reaches an item. Unset: 4 of 0..5; less where a prompt's "
        "scale is shorter.",
    )
    label: Literal["max", "count"] = Field(
        "max",
        description='A passage\'s label: its best rating ("max"), or how many items it reaches ("count").',
    )
    min_answers: int = Field(
        1, ge=1, description="Items a passage must reach: the label is its best rating on so many items."
    )
    unparsed: UnparsedPolicy = Field(
        "skip",
        description='An answer with no rating in it counts as "zero" (0), "seed" (1), or not ("skip").',
    )
    measures: list[str] | None = Field(
        None,
        min_length=1,
        examples=[["P(rel=4)@20", "nDCG@10", "Cover(rel=4)@20"]],
        description="As ir_measures prints them; the first sorts the leaderboard. Unset: chosen by depth.",
    )
    official_measures: list[str] | None = Field(
        None,
        min_length=1,
        examples=[["nDCG@10", "AP(rel=2)"]],
        description="Measures on the official judgments. Unset: nDCG@10, and AP and P with min_relevant.",
    )
    min_relevant: int = Field(1, ge=1, description="From this official label on, a passage is relevant.")
    average: Literal["all", "answered"] = Field(
        "all",
        description='Means are over all queries ("all", as trec_eval -c), or over those a run answered '
        '("answered", as the published Rubric workbench; flatters runs that skip queries).',
    )


class WatchSection(_Section):
    """The daemon's patience."""

    settle: float = Field(2.0, ge=0, description="A file counts when it has been still for so many seconds.")
    poll: float = Field(5.0, gt=0, description="Seconds between looks at the folder.")


class TrackConfig(_Section):
    """A whole trecexam.toml."""

    track: TrackSection = TrackSection()  # type: ignore[call-arg]
    grader: GraderSection = GraderSection()  # type: ignore[call-arg]
    ray: RaySection = RaySection()  # type: ignore[call-arg]
    scores: ScoresSection = ScoresSection()  # type: ignore[call-arg]
    watch: WatchSection = WatchSection()  # type: ignore[call-arg]

    def on_scale(self, max_rating: int, min_rating: int, path: Path) -> TrackConfig:
        """These settings for grades of 0..`max_rating`; `min_rating` is the default on that scale.

        Raises:
            ConfigError: a min_rating is set that no grade can reach.
        """
        if "min_rating" not in self.scores.model_fields_set:
            scores = self.scores.model_copy(update={"min_rating": min_rating})
            return self.model_copy(update={"scores": scores})
        if self.scores.min_rating > max_rating:
            raise ConfigError(
                f"`scores.min_rating` = {self.scores.min_rating}: the grader's prompt rates 0..{max_rating}; "
                f"set {min_rating}, or leave it out",
                path=path,
            )
        return self

    def measures(self) -> list[str]:
        """The rubric measures, in leaderboard order."""
        if self.scores.measures is not None:
            return list(dict.fromkeys(self.scores.measures))
        k, t = self.track.depth, self.scores.min_rating
        rel = t if self.scores.label == "max" else 1
        return [
            f"P(rel={rel})@{k}",
            f"nDCG@{k}",
            f"AP(rel={rel})",
            f"Cover(rel={t})@{k}",
            f"nCover(rel={t})@{k}",
            # ndeval computes its measures down to rank 20 only.
            f"alpha_nDCG@{min(k, 20)}",
        ]

    def official_measures(self) -> list[str]:
        """The measures that the official judgments are evaluated with."""
        if self.scores.official_measures is not None:
            return list(dict.fromkeys(self.scores.official_measures))
        rel = self.scores.min_relevant
        return ["nDCG@10", f"AP(rel={rel})", f"P(rel={rel})@{self.track.depth}"]
