"""human.tsv, and people's ratings in the report."""

from __future__ import annotations

from trecexam.features.override.overriding import human_table
from trecexam.line.assessment import Assessment
from trecexam.line.feature import Feature
from trecexam.line.texts import with_texts
from trecexam.tables.page.page import Page
from trecexam.tables.result import Tables
from trecexam.tables.table import Table

#: What a rule of [judging] says, in words.
_RULES = {
    "latest": "the last",
    "majority": "the most frequent one, the lowest in a tie",
    "adjudicated": "the one on which all agree, else the adjudicated one",
}


def own_ratings(track: Assessment) -> Table | None:
    """People's ratings and what became of them; None where nobody rated anything."""
    return human_table(track) if track.overrides.decisions or track.judgments.decisions else None


def _human(track: Assessment) -> Tables | None:
    table = own_ratings(track)
    return None if table is None else Tables({"human": table})


def _page(track: Assessment, page: Page) -> None:
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
