"""What it says of a track: a `Result`, for Python, the command, out/, the report and the live page."""

from pydantic import Field

from trecexam.config import Section
from trecexam.feature import feature_of_result
from trecexam.results.result import Tables
from trecexam.results.table import Table
from trecexam.track import selection


class OverlapSection(Section):
    """[overlap] of trecexam.toml."""

    first: int = Field(20, ge=1, description="Passages of each run and query that count.")


def overlaps(track):
    """Each run's mean best rating, best first."""
    first = track.config.section(OverlapSection).first
    totals, n = dict.fromkeys(track.runs, 0.0), 0
    for query in track.ratings():
        n += query.ratings.shape[1]
        for run, ranks in zip(track.runs, track.pool[query.query_id].ranks, strict=True):
            best = query.ratings[[place for place in ranks[:first] if place >= 0]].max(axis=0, initial=0)
            totals[run] += float(best.sum())
    means = ((run, total / max(n, 1)) for run, total in totals.items())
    rows = tuple(sorted(means, key=lambda row: -row[1]))
    note = "Mean over queries and items of the best rating among a run's first passages, 0 to 5."
    return Tables({"runs": Table(("run", "overlap"), rows)}, (note,))


def runs(track):
    """Each run's overlap, for Python and the command: `trecexam_overlap.runs(track)`."""
    selected = selection(track)
    graded = selected.graded()
    return selected.with_grader_note(overlaps(graded), graded.name)


OVERLAP = feature_of_result("overlap", "Words of the items", overlaps)
