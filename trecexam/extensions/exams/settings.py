"""[exam] of trecexam.toml: what a question of a multiple-choice exam must hold to stay."""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from trecexam.config import Section

#: The filters, in the order in which they are told. A setting has the same name, with _ for -.
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
    """Which questions `trecexam exam filter` leaves out. No thresholds are published: these are ours."""

    without: list[FilterName] = Field([], description=f"Filters not to use: {', '.join(FILTERS)}.")
    min_question: int = Field(50, ge=1, description="length: characters that a stem has at least.")
    max_question: int = Field(1000, ge=1, description="length: characters that a stem has at most.")
    min_choice: int = Field(1, ge=1, description="length: characters that each candidate has at least.")
    max_choice: int = Field(500, ge=1, description="length: characters that each candidate has at most.")
    extra_candidate_jaccard: float = Field(
        0.25,
        ge=0,
        le=1,
        description="A wrong candidate may be closer to the passage than the right one by so much, in "
        "Jaccard similarity to the closest n words (n: the candidates' mean length).",
    )
    extra_candidate_embedding: float = Field(
        0.2, ge=0, le=2, description="The same by the cosine of sentence embeddings."
    )
    intra_candidate_jaccard: float = Field(
        0.75, ge=0, le=1, description="Two candidates may be so close, in Jaccard similarity of their words."
    )
    intra_candidate_embedding: float = Field(
        0.95, ge=-1, le=1, description="The same by the cosine of sentence embeddings."
    )
    duplicates: float = Field(
        0.9,
        gt=0,
        le=1,
        description="From this similarity of the letters of two stems on, the later one is a duplicate.",
    )
    embedding: str | None = Field(
        None,
        examples=["offline"],
        description="A sentence-transformers model for the embedding filters: a folder, a hub id, or "
        '"offline", the weights in that extra. Of a passage counts what the model reads. Unset: these '
        "filters are not used.",
    )

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        for what in ("question", "choice"):
            least, most = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if least > most:
                raise ValueError(f"min_{what} is {least:,} and max_{what} {most:,}: nothing would be allowed")
        return self
