"""Sections of trecexam.toml: every field has its unit and default here; `init` writes them out."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from trecexam.config.language_models import Section

Rule = Literal["latest", "majority", "adjudicated"]


class JudgingSection(Section):
    """What assessors judge, and which of several people's ratings counts."""

    scale: list[str] | None = Field(
        None,
        min_length=2,
        max_length=6,
        examples=[["not relevant", "related", "highly relevant", "perfectly relevant"]],
        description="The meanings of the judgments 0, 1, 2, ... of a whole passage. Judgments are stored in "
        "judgments.tsv and change no label of the grader. Unset: the scale of the official judgments, "
        "without any that of the grader.",
    )
    guidelines: str | None = Field(
        None, examples=["guidelines.md"], description="Markdown file that assessors see next to each passage."
    )
    rule: Rule = Field(
        "latest",
        description='Which rating of a cell counts if several people rated it: the "latest"; the most '
        'frequent of each person\'s last ("majority"; the lowest in a tie); or the one on which all agree, '
        'else that of the person who decided between them ("adjudicated").',
    )
    whole_passage: bool | None = Field(
        None,
        examples=[True],
        description="Assessors judge passages as a whole. Unset: where there is a scale, or no items.",
    )
    reason: bool = Field(False, description="Assessors give a reason for each judgment.")

    @field_validator("scale")
    @classmethod
    def _distinct(cls, value: list[str] | None) -> list[str] | None:
        if value is not None and (len(set(value)) < len(value) or not all(text.strip() for text in value)):
            raise ValueError("each step has its own name")
        return value

    @property
    def best(self) -> int | None:
        """The highest judgment; None without a scale."""
        return None if self.scale is None else len(self.scale) - 1


UnparsedPolicy = Literal["zero", "skip", "seed"]


class TrackSection(Section):
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
        description='Official ranking, optional: {"run": rank} JSON or `run<TAB>rank` TSV, rank 1 is best; '
        "or values of measures, as ir_measures and TREC AutoJudge write them. Another track's "
        "out/leaderboard.tsv is one. Unset: official_leaderboard.json, .tsv, .txt or .jsonl if there.",
    )
    dataset: str | None = Field(
        None,
        examples=["msmarco-passage/trec-dl-2019/judged"],
        description="An ir_datasets id; replaces queries, passages and qrels not given as files.",
    )
    runs: str = Field("runs", description="The drop folder, searched with its sub-folders.")
    pool: Literal["text", "citations", "both"] = Field(
        "text",
        description="Which texts of a generated response are graded: its own text in passages, the passages "
        "that it cites, or both.",
    )
    unit: Literal["passage", "response"] = Field(
        "passage",
        description="Grade a response's own text passage by passage, or the response as a whole, as TREC RAG "
        "assigns nuggets. With whole responses, ranked runs are left out.",
    )
    facets: bool = Field(
        False,
        description="The bank's query ids are query/facet, as in TREC CAR: an item belongs to the query, the "
        "part before the first /. `trecexam export qrels --by facet` gives labels by facet.",
    )
    depth: int = Field(20, ge=1, description="Passages of each run and query that enter the pool (ranks).")
    pool_judged: bool = Field(
        False,
        description="Also pool passages with an official judgment if their text is there: they are graded "
        "and labelled, though no run has them.",
    )
    exclude_query_document: bool = Field(
        False,
        description="Leave a query's own document, which has the query's id, out of runs and pool, as BEIR "
        "does for ArguAna, Quora and CQADupStack.",
    )
    min_text: int = Field(1, ge=1, description="Passages with fewer characters than this are not graded.")
    truncate: int | None = Field(
        None,
        ge=1,
        examples=[400],
        description="Words of a generated response that count; what follows is cut. Unset: all.",
    )
    strict: bool = Field(
        False,
        description="Reject a whole file of generated responses for one bad line. false: skip that line and "
        "name it in out/rejected.tsv.",
    )

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
    """How grades become labels and scores."""

    min_rating: int = Field(
        4,
        ge=1,
        le=5,
        description="From this rating on, a passage reaches an item. Unset: 4 of 0..5; less where a prompt's "
        "scale is shorter.",
    )
    label: Literal["max", "count", "expected"] = Field(
        "max",
        description='A passage\'s label: its best rating ("max"), or how many items it reaches ("count"). '
        '"expected": as "max", but the gain of nDCG is the expected best rating, by the grader\'s '
        "probabilities.",
    )
    min_answers: int = Field(
        1, ge=1, description="Items a passage must reach: the label is its best rating on so many items."
    )
    unparsed: UnparsedPolicy = Field(
        "skip",
        description='An answer with no rating in it counts as 0 ("zero"), as 1 ("seed"), or gives no rating '
        '("skip"): a passage without any is not relevant. Where no answer has a rating, there are no scores.',
    )
    measures: list[str] | None = Field(
        None,
        min_length=1,
        examples=[["P(rel=4)@20", "nDCG@10", "Cover(rel=4)@20"]],
        description="As ir_measures prints them; the first sorts the leaderboard. Unset: by depth, P "
        "first; Cover of generated responses alone, A and V where the bank has importance; `ragval` has its "
        "own.",
    )
    official_measures: list[str] | None = Field(
        None,
        min_length=1,
        examples=[["nDCG@10", "AP(rel=2)"]],
        description="Measures on the official judgments. Unset: nDCG@10, and AP and P with min_relevant.",
    )
    min_relevant: int = Field(1, ge=1, description="A passage is relevant from this official label on.")
    average: Literal["all", "answered"] = Field(
        "all",
        description='Means are over all queries ("all", as trec_eval -c), or over those a run answered '
        '("answered", as the published Rubric workbench; flatters runs that skip queries).',
    )


class WatchSection(Section):
    """The daemon's patience."""

    settle: float = Field(2.0, ge=0, description="Read a file after this many seconds without a change.")
    poll: float = Field(5.0, gt=0, description="Seconds between looks at the folder.")


class CellsSection(Section):
    """In which order cells are graded. Does not change any answer."""

    order: Literal["useful", "bank"] | None = Field(
        None,
        examples=["bank"],
        description='"useful" grades first what moves the leaderboard most: passages at high ranks of many '
        'runs, on their most promising items; "bank" goes by query, passage and item. Unset: useful where a '
        "language model is asked.",
    )
    outputs_every: float = Field(
        60.0,
        gt=0,
        description='With order = "useful": seconds between outputs that are written during grading, and '
        "marked as partial. Writing them takes at most a twentieth of the time.",
    )


class ReportPageSection(Section):
    """The report page, for people."""

    write: bool = Field(
        True, description="Write out/report.html and out/plots/ at each update. false removes them."
    )
    pdf: bool = Field(
        False,
        description="Write each plot as PDF too, beside SVG. `trecexam plot` does it for a paper.",
    )
    title: str = Field(
        "Evaluation report",
        description="The title of the report. `trecexam init` writes the name of the folder into it.",
    )
    baseline: str | None = Field(None, description="The run that the report compares all others with.")


class RaySection(Section):
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
        examples=[1],
        description="GPUs of a worker; 0.5 lets two share one. Unset: 1, or 0 where the cluster has none.",
    )
    cpus_per_worker: float = Field(
        1, ge=0, description="CPUs of a worker, and its threads where it has no GPU."
    )
    wait: float = Field(
        30.0,
        ge=0,
        description="Seconds without any worker after which grading ends for now; `watch` tries again each "
        "minute.",
    )
    batch_seconds: float = Field(
        10.0,
        gt=0,
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
                "so that ray:// is rejected"
            )
        return value

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_a_part(cls, value: float | None) -> float | None:
        if value is not None and value > 1 and value != int(value):
            raise ValueError("give a part of one GPU, or a whole number")
        return value
