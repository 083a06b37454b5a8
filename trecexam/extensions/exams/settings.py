"""[exam] of trecexam.toml: settings of the exam filters."""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from trecexam.config import Section

#: The filters, in the order of reports. Settings have the same names with _ instead of -.
FilterName = Literal[
    "self-contained",
    "length",
    "extra-candidate-jaccard",
    "extra-candidate-embedding",
    "intra-candidate-jaccard",
    "intra-candidate-embedding",
    "duplicates",
]
FILTERS: tuple[FilterName, ...] = get_args(FilterName)


class ExamSection(Section):
    """Settings of `trecexam exam filter`. The thresholds are our own; none are published."""

    without: list[FilterName] = Field([], description=f"Filters not to use: {', '.join(FILTERS)}.")
    min_question: int = Field(50, ge=1, description="Filter length: least characters of a stem.")
    max_question: int = Field(1000, ge=1, description="Filter length: most characters of a stem.")
    min_choice: int = Field(1, ge=1, description="Filter length: least characters of each candidate.")
    max_choice: int = Field(500, ge=1, description="Filter length: most characters of each candidate.")
    extra_candidate_jaccard: float = Field(
        0.25,
        ge=0,
        le=1,
        description="Drop a question if a wrong candidate is closer to the passage than the right one by "
        "more than this, in Jaccard similarity to the closest n words (n: the candidates' mean length).",
    )
    extra_candidate_embedding: float = Field(
        0.2, ge=0, le=2, description="The same by the cosine of sentence embeddings."
    )
    intra_candidate_jaccard: float = Field(
        0.75,
        ge=0,
        le=1,
        description="Drop a question if two candidates are closer than this, in Jaccard "
        "similarity of their words.",
    )
    intra_candidate_embedding: float = Field(
        0.95, ge=-1, le=1, description="The same by the cosine of sentence embeddings."
    )
    duplicates: float = Field(
        0.9,
        gt=0,
        le=1,
        description="Drop a question as a duplicate if the letters of its stem are this similar to an "
        "earlier one's, or more.",
    )
    embedding: str | None = Field(
        None,
        examples=["offline"],
        description="A sentence-transformers model for the embedding filters: a folder, a hub id, or "
        '"offline", the weights in that extra. Only the part of a passage that fits the model is '
        "compared. Unset: these filters are not used.",
    )

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        for what in ("question", "choice"):
            least, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if least > most:
                raise ValueError(f"min_{what} is {least:,} and max_{what} {most:,}: no question could pass")
        return self
