"""[judging]: what people are asked, and whose rating counts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from trecexam.config.language_models import Section

Rule = Literal["latest", "majority", "adjudicated"]


class JudgingSection(Section):
    """What assessors judge, and which of several people's ratings counts."""

    scale: list[str] | None = Field(
        None,
        min_length=2,
        max_length=6,
        examples=[["not relevant", "related", "highly relevant", "perfectly relevant"]],
        description="What the judgments 0, 1, 2 .. of a passage as a whole mean. They are in judgments.tsv "
        "and change no label of the grader. Unset: a passage as a whole is rated on the grader's scale.",
    )
    guidelines: str | None = Field(
        None, examples=["guidelines.md"], description="Markdown that assessors have beside each passage."
    )
    rule: Rule = Field(
        "latest",
        description='Whose rating of a cell counts: the "latest" one; that of the "majority", by each '
        'person\'s last rating, of equally many the lowest; or with "adjudicated" the one on which all '
        "agree, else only what somebody decided who looked at all of them.",
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
            raise ValueError("each step has a name of its own")
        return value

    @property
    def best(self) -> int | None:
        """The highest judgment; None without a scale."""
        return None if self.scale is None else len(self.scale) - 1
