"""Settings of who grades: [grader], and [graders.NAME] of one of several."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from trecexam.config.language_models import LanguageModelSection, Section
from trecexam.config.sections import ScoresSection, TrackSection

_TRACK: Any = TrackSection.model_fields


class GraderSection(LanguageModelSection):
    """Who grades, and with what. Only settings that can change an answer enter the grader's identity."""

    name: str = Field(
        "embedding",
        description="One of `trecexam graders`. erag and ragval take openai's settings where base_url is "
        "set, else those of causal and seq2seq.",
    )
    model: str | None = Field(
        None,
        examples=["google/flan-t5-large"],
        description="A folder or hub id. embedding: a sentence-transformers model (unset: the extra "
        "'offline'). seq2seq: a T5 (unset: google/flan-t5-large). causal: a decoder-only model. openai: what "
        "the server calls it. erag: as one of these three. recorded: which model's grades to take, where the "
        "recording has several.",
    )
    prompt: str | None = Field(
        None,
        examples=["QuestionSelfRatedUnanswerablePromptWithChoices"],
        description="seq2seq, causal, openai: one of `trecexam graders --prompts`, or a .toml or .jinja file "
        "here (unset: the paper's self-rating of questions and of nuggets). recorded: which prompt's grades "
        "to take. erag: a file with {query} and {document} (unset: ours).",
    )
    metric: str | None = Field(
        None,
        examples=["f1"],
        description="erag: how an output is compared with the gold outputs: em, f1, rouge-l, accuracy, or a "
        "function of your own as module:function, (output, gold outputs) -> 0..1. Unset: em.",
    )
    decode: Literal["choices", "beam"] | None = Field(
        None,
        examples=["beam"],
        description='seq2seq, causal: "choices" scores each permitted answer; "beam" is the papers\' beam '
        "search, free text. Unset: choices, where the prompt has permitted answers.",
    )
    beams: int = Field(5, ge=1, description='Beams of `decode = "beam"`.')
    max_new_tokens: int | None = Field(
        None,
        ge=1,
        examples=[4096],
        description='Tokens that an answer may have, thoughts too: `decode = "beam"`, openai, erag. Unset: '
        "2,048 of a server; 512 of a model in this process. Raised for a server, only answers that were cut "
        "off are asked again.",
    )
    max_length: int | None = Field(
        None,
        ge=16,
        examples=[512],
        description="seq2seq, causal: tokens of a prompt; longer passages are cut. Unset: what the model "
        "takes (T5: what its files name, mostly 512).",
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
        description="recorded: a Rubric graded pool, a `trecexam export grades` file, or qrels; may be .gz.",
    )
    cut_points: list[float] | None = Field(
        None,
        examples=[[0.52, 0.56, 0.59, 0.63, 0.74]],
        description="embedding: the five cosines from which the rating is 1, 2, 3, 4, 5; of support the two "
        "from which it is partial, and full. Unset: fitted. With your own there are no "
        "probabilities.",
    )
    citations: Literal["first", "all"] = Field(
        "first",
        description='support: of the passages that a sentence cites, grade the "first", as TREC RAG 2024 '
        'did, or "all".',
    )
    structured: Literal["json_schema", "choice", "none"] | None = Field(
        None,
        examples=["json_schema"],
        description="openai: restrict the model to the prompt's permitted answers, by a JSON schema or by "
        '"choice" (vLLM 0.12 or newer, SGLang; NuggetAssign: to a list of them). Unset: it writes free text, '
        'which is parsed. ragval: a server is held to a JSON object of two scores, unless this is "none".',
    )
    logprobs: bool = Field(
        True,
        description="openai: ask for the probabilities of the permitted answers, where the server has them.",
    )
    max_characters: int = Field(
        20_000, ge=1, description="openai: characters of a passage; longer ones are cut at a word."
    )

    @field_validator("cut_points")
    @classmethod
    def _rising(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and (len(value) not in (2, 5) or sorted(value) != value):
            raise ValueError(
                "give five cosines in rising order, for the ratings 1, 2, 3, 4, 5; for support two, for "
                "partial and full"
            )
        return value


class NamedGrader(GraderSection, ScoresSection):
    """One of several graders: what it does otherwise than [track], [grader] and [scores] say."""

    kind: str | None = Field(
        None,
        examples=["rubric"],
        description="What is graded: rubric, nuggets, relevance, support. Unset: what the section's name, or "
        "its prompt, says.",
    )
    people: str | None = Field(
        None,
        examples=["rubric"],
        description="Take people's ratings from the grader of this name, which asks about the same. Unset: "
        "overrides.NAME.tsv; of the one named rubric overrides.tsv.",
    )
    runs: Literal["all", "responses", "ranked"] = Field(
        "all",
        description='Which runs it looks at: "all", generated "responses" alone, or "ranked" lists alone.',
    )
    write_bank: str | None = Field(
        None,
        examples=["nuggetizer"],
        description="`watch` has the language model write the bank where there is none, as `bank generate` "
        "does with this prompt: nuggetizer, questions, nuggets or another. Unset: it writes none.",
    )
    bank: list[str] | None = _TRACK["bank"]
    qrels: str | None = _TRACK["qrels"]
    official_leaderboard: str | None = _TRACK["official_leaderboard"]
    depth: int = _TRACK["depth"]
    pool: Literal["text", "citations", "both"] = _TRACK["pool"]
    unit: Literal["passage", "response"] = _TRACK["unit"]
    pool_judged: bool = _TRACK["pool_judged"]

    def given(self, section: type[Section]) -> dict[str, Any]:
        """The settings of a section that are set here."""
        # The drop folder is shared, and is no setting of a grader.
        return self.model_dump(exclude_unset=True, include=section.model_fields.keys() - {"runs"})
