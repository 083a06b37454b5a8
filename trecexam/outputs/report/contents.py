"""What the report's page says beside its plots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trecexam.features.items.items_plot import ItemSummary, items_table
from trecexam.features.items.quality import Quality
from trecexam.graders.base import identity_digest
from trecexam.outputs.page.model import Listed, Provenance, Report
from trecexam.outputs.report.findings import Findings
from trecexam.tables.excerpt import Excerpt, excerpt
from trecexam.tables.section import Picture
from trecexam.tables.table import Table, to_json
from trecexam.tables.terminal import cut

if TYPE_CHECKING:
    from trecexam.features.agreement.agreement import Agreements
    from trecexam.features.agreement.arithmetic import Crosstab
    from trecexam.features.holes.holes import HolesReport
    from trecexam.line.loaded import LoadedTrack

#: Rows that the page shows of each table; the files have the rest.
_ROWS, _ITEMS, _HOLES, _INPUTS = 50, 20, 15, 300
#: Characters of a text in the grader's identity or the settings.
_TEXT = 4_000
_POLICY = {"zero": "counts as 0", "seed": "counts as 1", "skip": "does not count"}
#: Columns of a table, and what the page calls them.
_CORRELATION = {
    "measure": "automatic",
    "official_measure": "official",
    "n_runs": "runs",
    "kendall_tau": "Kendall's tau",
    "kendall_tau.low": "low",
    "kendall_tau.high": "high",
    "spearman_rho": "Spearman's rho",
    "tau_ap": "tau_AP",
    "rbo": "RBO",
}
_ITEM = {
    "query_id": "query",
    "item_id": "item id",
    "text": "item",
    "mean_rating": "mean rating",
    "share_reaching": "share reaching",
    "runs_covering": "runs covering",
    "discrimination": "discrimination",
    "unparsed": "unparsed",
}
#: Half of what is to be expected of an item before anything is known of it.
_WEAK = 0.5


def sentence(reason: str) -> str:
    """A reason as a sentence."""
    return reason[:1].upper() + reason[1:].rstrip(".") + "."


def page_of(
    track: LoadedTrack,
    found: Findings,
    items: Quality,
    pictures: Mapping[str, Picture],
    why: Mapping[str, str],
) -> Report:
    """The page. `why` says by section why it has no plot."""
    counts = found.counts
    numbers = {
        "runs": len(track.runs),
        "queries": len(track.bank.query_ids),
        "items": len(track.bank),
        "pooled passages": counts.passages,
        "cells": counts.cells,
        "cells rated": counts.ok,
    }
    correlation = None
    if found.compared is not None:
        correlation = excerpt(found.compared.table(), _ROWS, "correlation.tsv", _CORRELATION)
    crosstabs, lines = _agreement(found.agreed)
    return Report(
        title=track.config.report.title,
        numbers=tuple((f"{count:,}", what) for what, count in numbers.items()),
        cautions=tuple(_cautions(track, found)),
        board=found.board if found.board.rows else None,
        pictures=pictures,
        why=why,
        correlation=correlation,
        remarks=tuple(map(sentence, found.compared.remarks)) if found.compared else (),
        crosstabs=crosstabs,
        agreed=lines,
        items=tuple(_lists(items)) if "items" in pictures else (),
        holes=_holes(found.holes),
        hole_lines=tuple(map(sentence, found.holes.summary_lines())),
        rejected=excerpt(found.rejected, _ROWS, "rejected.tsv"),
        human=None if found.human is None else excerpt(found.human, _ROWS, "human.tsv"),
        provenance=_provenance(track, found),
        beside=found.beside,
    )


def _cautions(track: LoadedTrack, found: Findings) -> Iterator[str]:
    counts = found.counts
    if not found.complete:
        yield (
            f"Grading had not ended when this was written: {counts.missing:,} of {counts.cells:,} cells have "
            "no grade yet, and all scores will change."
        )
    elif counts.missing:
        yield (
            f"The grader left {counts.missing:,} of {counts.cells:,} cells without a grade; they count as "
            "not relevant."
        )
    unread = counts.unparsed + counts.refused + counts.error
    if unread:
        policy = track.config.scores.unparsed
        yield (
            f"Of the grader's answers {counts.unparsed:,} are unparsed, {counts.refused:,} refused and "
            f'{counts.error:,} errors. The policy "{policy}": each unparsed or refused one {_POLICY[policy]}.'
        )
    if counts.no_text:
        yield (
            f"{counts.no_text:,} of {counts.passages:,} pooled passages have no text: they are not graded "
            "and count as not relevant."
        )


def _agreement(agreed: Agreements | None) -> tuple[tuple[Crosstab, ...], tuple[str, ...]]:
    if agreed is None:
        return (), ()
    one = agreed.found[0]
    tables = {table.name: table for table in one.tables}
    line = (
        f"{agreed.n_both:,} passages of {agreed.n_queries:,} queries have both a label of {agreed.grader} "
        f"and a judgment in {agreed.source}; {agreed.n_label_only:,} have only a label, "
        f"{agreed.n_judgment_only:,} only a judgment. People's ratings are left out."
    )
    kappa = tables["binary"].kappa
    said = (
        f"Cohen's kappa of the binary labels is {kappa.value:.2f} (95% interval {kappa.low:.2f} to "
        f"{kappa.high:.2f}, queries kept together)."
    )
    notes = [said] if kappa.value == kappa.value else []
    notes += [sentence(agreed.unpooled_note)] if agreed.unpooled_note else []
    return (tables["graded"], tables["binary"]), (line, *notes)


def _lists(found: Quality) -> Iterator[Listed]:
    """Items that an organizer should look at."""
    live = found.live
    hard = sorted((i for i in live if i.covering == 0), key=lambda i: (_number(i.mean_rating), i.query_id))
    easy = sorted(
        (i for i in live if i.covering == i.n_runs), key=lambda i: (-_number(i.mean_rating), i.query_id)
    )
    weak = sorted((i for i in live if i.discrimination < _WEAK), key=lambda i: (i.discrimination, i.query_id))
    mute = sorted((i for i in live if i.unparsed), key=lambda i: (-i.unparsed, i.query_id))
    gone = [i for i in found.items if i.retired]
    vital = [i for i in hard if i.importance == "vital"]
    for title, note, items in (
        (
            "Covered by no run",
            "Too hard, about something no run finds, or not to be answered from a passage.",
            hard,
        ),
        ("Vital, and covered by no run", "What an answer must have, and none has.", vital),
        ("Covered by all runs", "These tell no runs apart.", easy),
        (
            "Tell runs apart badly",
            "Able runs cover these hardly more often than others: the item's discrimination in `trecexam "
            f"exam fit` is below {_WEAK:g}.",
            weak,
        ),
        (
            "With answers that could not be read",
            "Unparsed or refused; `trecexam verify grading` shows them.",
            mute,
        ),
        ("Retired", "No longer asked about; their grades are kept.", gone),
    ):
        if items:
            yield Listed(title, note, _listed(items))


def _listed(items: list[ItemSummary]) -> Excerpt:
    return excerpt(items_table(items), _ITEMS, "plots/items.tsv", _ITEM)


def _number(value: float) -> float:
    return value if value == value else -1.0


def _holes(found: HolesReport) -> Excerpt | None:
    if not found.rows:
        return None
    judged = any(row.holes.unjudged is not None for row in found.sums())
    columns = ["run", "depth", "retrieved", *(["unjudged", "Judged"] if judged else []), "ungraded"]
    return excerpt(found.table(by_run=True), _HOLES, "holes.tsv", {name: name for name in columns})


def _provenance(track: LoadedTrack, found: Findings) -> Provenance:
    scores, identity, said = track.config.scores, dict(track.grader.identity), track.override_summary()
    human = "none"
    if said["who"]:
        who = ", ".join(said["who"])
        human = f"{said['cells']:,} cells and {said['passages']:,} passages as a whole, by {who}"
    label = "the best rating" if scores.label == "max" else "the number of items reached"
    if scores.min_answers > 1:
        label += f", min_answers {scores.min_answers}"
    judged = len({qrel.query_id for qrel in track.official or ()})
    pooled = f"the first {track.config.track.depth} of each run and query"
    if track.config.track.pool_judged:
        pooled += f", and {track.n_judged_only:,} judged passages that are not among them"
    facts = {
        "Grader": " ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key)),
        "Grader identity, sha256": identity_digest(identity).hex(),
        "Unparsed answers": f"{found.counts.unparsed:,} of {found.counts.cells:,} cells; "
        f'policy "{scores.unparsed}": an unparsed answer {_POLICY[scores.unparsed]}',
        "Human ratings": human,
        "Label": f"{label}; items are reached from rating {scores.min_rating} on",
        "Pool": pooled,
        "Test bank": f"{len(track.bank):,} items, {track.bank.n_retired:,} retired",
        "Official judgments": f"{len(track.official):,} of {judged:,} queries" if track.official else "none",
    }
    inputs = Table(("file", "sha256"), tuple(track.digests.items()))
    return Provenance(
        facts=tuple(facts.items()),
        grader=_json(identity),
        settings=_json(
            track.config.model_dump(mode="json", exclude={"generator", "exam"}, exclude_none=True)
        ),
        inputs=excerpt(inputs, _INPUTS, "manifest.json"),
        versions=tuple((name, version or "not installed") for name, version in found.versions.items()),
    )


def _json(value: Any) -> str:
    return to_json(_short(json.loads(json.dumps(value))))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner) for inner in value]
    return cut(value, _TEXT) if isinstance(value, str) and len(value) > _TEXT else value
