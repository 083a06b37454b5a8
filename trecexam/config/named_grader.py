"""[graders.NAME] of trecexam.toml: one of several graders in a track."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from trecexam.config.graders import GraderSection
from trecexam.config.language_models import Section
from trecexam.config.sections import ScoresSection, TrackSection


def _as_in_track(key: str) -> Any:
    return TrackSection.model_fields[key]


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
    bank: list[str] | None = _as_in_track("bank")
    qrels: str | None = _as_in_track("qrels")
    official_leaderboard: str | None = _as_in_track("official_leaderboard")
    depth: int = _as_in_track("depth")
    pool: Literal["text", "citations", "both"] = _as_in_track("pool")
    unit: Literal["passage", "response"] = _as_in_track("unit")
    pool_judged: bool = _as_in_track("pool_judged")

    def given(self, section: type[Section]) -> dict[str, Any]:
        """The settings of a section that are set here."""
        # The drop folder is shared, and is no setting of a grader.
        keys = self.model_fields_set & section.model_fields.keys() - {"runs"}
        return {key: getattr(self, key) for key in self.__class__.model_fields if key in keys}
