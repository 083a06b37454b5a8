"""human.tsv, and people's ratings in the report."""

from __future__ import annotations

from trecexam.feature import Feature
from trecexam.features.override.overriding import human_table
from trecexam.grades.graded_track import GradedTrack, with_texts
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Table

#: What a rule of [judging] says, in words.
_RULES = {
    "latest": "the last",
    "majority": "the most frequent one, the lowest in a tie",
    "adjudicated": "the one on which all agree, else the adjudicated one",
}


def own_ratings(track: GradedTrack) -> Table | None:
    """People's ratings and what became of them; None where nobody rated anything."""
    return human_table(track) if track.overrides.decisions or track.judgments.decisions else None


def _human(track: GradedTrack) -> Tables | None:
    table = own_ratings(track)
    return None if table is None else Tables({"human": table})


def _page(track: GradedTrack, page: Page) -> None:
    """Add the end of the section "grades"."""
    table = own_ratings(track)
    rule = track.config.judging.rule if track.config.has_judging else None
    page.add(
        "grades",
        None if table is None else Tables({"human": with_texts(track, table)}),
        # Where no extension has begun the section.
        title="Grades",
        heading="People's ratings",
        lead=""
        if rule is None
        else f"If several people rate the same cell, the rule `{rule}` decides which rating counts: "
        f"{_RULES[rule]}.",
        why="No person has rated anything; `trecexam override` does." if table is None else "",
        files=() if table is None else ("human.tsv",),
    )


_HUMAN = "People's ratings next to the grader's: who, why, and which of them count."
OVERRIDE = Feature({"human.tsv": (_HUMAN, _human)}, _page, of_any_kind=True)
