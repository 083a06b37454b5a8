"""Agreement of the grader's labels with the official judgments: tables, files and report section."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.feature import Feature
from trecexam.features.agreement.arithmetic import Agreement, agreement
from trecexam.files.cache import memoized
from trecexam.grades.diagnostics import nothing_graded
from trecexam.grades.graded_track import GradedTrack, with_texts
from trecexam.grades.official import relevance_thresholds, track_judgments
from trecexam.inputs.official import no_overlap
from trecexam.inputs.thresholds import Thresholds
from trecexam.results.page.page import Page
from trecexam.results.result import Result, Tables
from trecexam.results.table import Layout, Table, Value
from trecexam.results.text import CHANGES, METHOD, Note, plural
from trecexam.scores.kappa import MIN_QUERIES, labels_of_both
from trecexam.scores.labels import labels
from trecexam.scores.ratings import QueryRatings

#: Name of the sum over all labels or judgments.
ALL = "all"
#: Maximum number of disagreements in the report.
_SHOWN = 10


class NothingInCommonError(TrecexamError):
    """No passage has both an automatic and an official label."""


@dataclass(frozen=True)
class Agreements(Result):
    """The agreement of a track's labels with its official judgments, for each choice of thresholds.

    Displayed are the tables `graded`, `merged` and `binary` of each choice, labels by judgments. The table
    `agreement` has all cells in one. `kappa`, `accuracy` and the facts are those of the first choice.

    Attributes:
        source: the official judgments' file or dataset.
        grader: the grader's name and model.
        n_queries: queries with passages that have both labels.
        n_both: passages with a label and a judgment; only these passages count.
        n_label_only, n_judgment_only: passages of the bank's queries with only a label or only a judgment.
        left_out: people's ratings, which are not compared: `cells`, `passages`, and `who`.
        found: an `Agreement` per choice of thresholds, by min_rating, then min_answers.
        notes: compared data, thresholds with their reasons, and warnings on the figures.
    """

    source: str
    grader: str
    n_queries: int
    n_both: int
    n_label_only: int
    n_judgment_only: int
    left_out: Mapping[str, Any]
    found: tuple[Agreement, ...]
    notes: tuple[str, ...] = ()

    def _declare(self) -> dict[str, Table]:
        """Declare one table of all cells, the figures by thresholds, then the displayed tables."""
        return {
            "agreement": _agreement_table(self.found),
            "thresholds": _thresholds_table(self.found),
            **_crosstabs(self.found),
        }

    def _for_people(self, *, wide: bool = False) -> tuple[Table, ...]:
        """Return the tables of labels by judgments, without the first two."""
        return tuple(self.tables.values())[2:]

    @property
    def kappa(self) -> float:
        """Cohen's kappa of the first choice of thresholds."""
        return self.found[0].binary.kappa.value

    @property
    def accuracy(self) -> float:
        """The share of passages, 0..1, whose label and judgment agree at the first choice of thresholds."""
        return self.found[0].accuracy

    @property
    def facts(self) -> dict[str, Any]:
        """The compared data, and the figures of the first choice of thresholds."""
        counts = ("n_queries", "n_both", "n_label_only", "n_judgment_only")
        return {
            "official": self.source,
            "grader": self.grader,
            **{name: getattr(self, name) for name in counts},
            "human_ratings_left_out": dict(self.left_out),
            **next(iter(_thresholds_table(self.found[:1]))),
        }


def agreements(
    track: GradedTrack,
    min_ratings: Sequence[int] = (),
    min_answers: Sequence[int] = (),
    min_relevant: int | None = None,
) -> Agreements:
    """Return label by judgment tables and Cohen's kappa, for every min_rating with every min_answers.

    Raises:
        NothingInCommonError: no passage has both labels; the message has the reason.
    """
    judged = track_judgments(track)
    # Without people's ratings: a person's correction is no agreement of the grader.
    ratings = track.ratings(human=False)
    choices = [
        relevance_thresholds(track, rating, min_relevant, answers)
        for rating, answers in itertools.product(
            dict.fromkeys(min_ratings or (None,)), dict.fromkeys(min_answers or (None,))
        )
    ]
    for choice in choices:
        if choice.min_rating > choice.max_rating:
            raise TrecexamError(f"min_rating {choice.min_rating}: the grader rates 0..{choice.max_rating}")
    judgments = {q.query_id: judged.judged.get(q.query_id, {}) for q in ratings}
    levels = {label for of_query in judgments.values() for label in of_query.values()}
    identity = track.grader.identity
    grader = " ".join(str(identity[key]) for key in ("grader", "model") if identity.get(key))
    compared: list[Agreement] = []
    for choice in choices:
        of_grader = {
            q.query_id: labels(q, choice.rule, choice.min_rating, choice.min_answers) for q in ratings
        }
        pairs = labels_of_both(of_grader, judgments)
        if not len(pairs.query):
            why = no_overlap(judged, {q.query_id: q.doc_ids for q in ratings}, track.config.track.unit)
            if why:
                raise NothingInCommonError(why)
            raise NothingInCommonError(_why_none(track, ratings), path=track.folder.root)
        compared.append(agreement(pairs, choice, levels))
    n_queries, n_both = len(set(pairs.query.tolist())), len(pairs.query)
    whose = "people's judgments" if judged.written_by is None else "judgments"
    notes = [
        f"{n_both:,} passages of {n_queries:,} queries have a label and a judgment ({judged.source}); "
        f"{pairs.first_only:,} have only a label, {pairs.second_only:,} only a judgment"
    ]
    axes = Note(f"rows are labels of {grader}, columns are {whose} ({judged.source})", CHANGES)
    # All choices have equal axes, and mostly an equal pairing.
    notes += dict.fromkeys(note for agreed in compared for note in (axes, *_threshold_notes(agreed)))
    qrels = track.folder.qrels()
    official_digest = None if qrels is None else track.digests.get(track.folder.shown(qrels))
    is_recorded = identity.get("grader") == "recorded" and qrels is not None
    if is_recorded and identity.get("sha256") == official_digest:
        notes.append(Note("the labels are the official judgments: agreement is 1 by construction", CHANGES))
    notes += [*judged.warnings(), *judged.people_notes]
    n_unpooled = sum(len(judgments[q.query_id].keys() - set(q.doc_ids)) for q in ratings)
    # Qrels used as grades cannot be extended.
    if n_unpooled and not track.config.track.pool_judged and track.grader.known_passages is None:
        notes.append(
            f"{plural(n_unpooled, 'judged passage')} without a label outside the runs' first ranks; "
            "published tables include such passages: `pool_judged = true` in [track] grades them too"
        )
    left_out = track.override_summary()
    if left_out["who"]:
        notes.append(
            f"left out: the ratings of {', '.join(left_out['who'])} in place of the grader's "
            f"({plural(left_out['cells'], 'cell')}, {plural(left_out['passages'], 'passage')})"
        )
    notes += (note for agreed in compared for note in _figures_notes(agreed))
    if n_queries < MIN_QUERIES:
        notes.append(f"no intervals: they need passages of at least {MIN_QUERIES} queries")
    return Agreements(
        *(judged.source, grader, n_queries, n_both, pairs.first_only, pairs.second_only),
        left_out,
        tuple(compared),
        tuple(notes),
    )


def _why_none(track: GradedTrack, ratings: Sequence[QueryRatings]) -> str:
    if not any(q.doc_ids for q in ratings):
        return "no passages to compare labels of: drop runs into the track's runs folder"
    if not any(q.rated.any() for q in ratings):
        return nothing_graded(track)
    return "no passage has both an automatic label and an official judgment"


def _agreement_table(agreements: Iterable[Agreement]) -> Table:
    """Return a row for each cell of each table and for each sum (`all`).

    The row of a paired cell has the kappa of label or not against judgment or not; the row of `all` labels
    and judgments has the kappa of the whole table, also weighted.
    """
    rows: list[tuple[Value, ...]] = []
    no_kappa = (None,) * 5
    for agreed in agreements:
        for table in agreed.tables:
            key = (table.name, *agreed.thresholds[:3])
            for label, counts, paired, kappa in zip(
                table.labels, table.counts.tolist(), table.paired, table.kappas, strict=True
            ):
                for column, (judgment, count) in enumerate(zip(table.judgments, counts, strict=True)):
                    of_pair = kappa if column == paired else no_kappa[:3]
                    rows.append((*key, label, judgment, count, *of_pair, None, None))
                rows.append((*key, label, ALL, sum(counts), *no_kappa))
            sums = table.counts.sum(axis=0).tolist()
            rows += [
                (*key, ALL, judgment, count, *no_kappa)
                for judgment, count in zip(table.judgments, sums, strict=True)
            ]
            rows.append((*key, ALL, ALL, sum(sums), *table.kappa, table.linear, table.quadratic))
    kappas = ("kappa", "kappa.low", "kappa.high", "kappa.linear", "kappa.quadratic")
    return Table(("table", *Thresholds._fields[:3], "label", "judgment", "count", *kappas), tuple(rows))


def _thresholds_table(agreements: Iterable[Agreement]) -> Table:
    """Return a row for each choice of thresholds, with the figures of its binary table."""
    figures = ("accuracy", "precision", "recall", "kappa", "kappa.low", "kappa.high")
    rows: list[tuple[Value, ...]] = [
        (
            *(*agreed.thresholds[:4], agreed.thresholds.same_scale),
            *(agreed.accuracy, agreed.precision, agreed.recall),
            *agreed.binary.kappa,
        )
        for agreed in agreements
    ]
    return Table((*Thresholds._fields[:4], "same_scale", *figures), tuple(rows))


def _crosstabs(agreements: Sequence[Agreement]) -> dict[str, Table]:
    """Return name -> displayed table: labels down, judgments across, each row with its kappa.

    `against` is the judgment that the row's kappa compares with.
    """
    several, tables = len(agreements) > 1, {}
    for number, agreed in enumerate(agreements, 1):
        for table in agreed.tables:
            judged = [f"judged {judgment}" for judgment in table.judgments]
            header = (f"{table.name} label", *judged, ALL, "against", "kappa", "kappa.low", "kappa.high")
            rows: list[tuple[Value, ...]] = []
            for label, counts, column, kappa in zip(
                table.labels, table.counts.tolist(), table.paired, table.kappas, strict=True
            ):
                against = None if column is None else judged[column]
                rows.append((label, *counts, sum(counts), against, *kappa))
            sums = table.counts.sum(axis=0).tolist()
            rows.append((ALL, *sums, sum(sums), None, *table.kappa))
            name = f"{table.name} {number}" if several else table.name
            caption = str(agreed.thresholds) if several else ""
            tables[name] = Table(header, tuple(rows), layout=Layout(header[:1]), caption=caption)
    return tables


def _threshold_notes(agreed: Agreement) -> tuple[str, str]:
    """Return two notes: the thresholds, and the pairing of graded labels, with reasons."""
    at, graded, groups = agreed.thresholds, agreed.graded, agreed.merged
    paired = "graded table: a label is compared with the judgment of the same number"
    if not at.same_scale:
        sides = ", ".join(
            f"labels {label} with judgments {judgment}"
            for label, judgment in zip(groups.labels, groups.judgments, strict=True)
        )
        column = graded.paired[0]
        example = (
            "" if column is None else f"; label {graded.labels[0]} with judgment {graded.judgments[column]}"
        )
        paired = (
            "graded table: the scales differ, so a label is compared with the lowest judgment of its group "
            f"({sides}){example}"
        )
    return Note(f"{at.in_words} ({at.reason})", CHANGES), Note(paired, METHOD)


def _figures_notes(agreed: Agreement) -> Iterator[str]:
    """Yield the figures of the binary table, and warnings where these are undefined."""
    at, binary = str(agreed.thresholds), agreed.binary
    value, low, high = binary.kappa
    accuracy, precision, recall, kappa = (
        "-" if math.isnan(share) else f"{share:.2f}"
        for share in (agreed.accuracy, agreed.precision, agreed.recall, value)
    )
    interval = ""
    if not math.isnan(low):
        interval = f" (95% interval {low:.2f} to {high:.2f}, queries kept together)"
    line = (
        f"binary table at {at}: accuracy {accuracy}, precision {precision}, recall {recall}, Cohen's kappa "
        f"{kappa}{interval}"
    )
    yield Note(line, CHANGES)
    for side, names, sums in (
        ("label", binary.labels, binary.counts.sum(axis=1)),
        ("judgment", binary.judgments, binary.counts.sum(axis=0)),
    ):
        present = [name for name, n in zip(names, sums.tolist(), strict=True) if n]
        if len(present) == 1:
            yield Note(f"{at}: every {side} is {present[0]}, so the binary kappa says nothing", CHANGES)


@memoized
def own_agreement(track: GradedTrack) -> Agreements | None:
    """Return the agreement at the track's thresholds; None where no passage has both labels."""
    try:
        return None if track.official is None else agreements(track)
    except NothingInCommonError:
        return None


def disagreements(track: GradedTrack) -> Table:
    """List the passages that only one side finds relevant, widest difference first.

    Labels exclude people's ratings. The difference of a label and a judgment is that of their distances from
    the thresholds of `relevance_thresholds`.
    """
    at, judged = relevance_thresholds(track), track_judgments(track).judged
    least = at.min_answers if at.rule == "count" else at.min_rating
    rows = []
    for q in track.ratings(human=False):
        label_by_doc = labels(q, at.rule, at.min_rating, at.min_answers)
        for doc_id, judgment in judged.get(q.query_id, {}).items():
            label = label_by_doc.get(doc_id)
            if label is not None and (label >= least) != (judgment >= at.min_relevant):
                gap = abs((judgment - at.min_relevant) - (label - least))
                rows.append((-gap, q.query_id, doc_id, label, judgment))
    header = ("query_id", "doc_id", "label", "judged")
    return Table(header, tuple(row[1:] for row in sorted(rows)))


def _page(track: GradedTrack, page: Page) -> None:
    """Add to the section "official": the agreement, then the texts of the widest disagreements."""
    agreements, heading = own_agreement(track), "Agreement of labels with judgments"
    if agreements is None:
        judged = track.official is not None
        why = "No passage has both an automatic label and a judgment." if judged else "No official judgments."
        page.add("official", heading=heading, why=why)
        return
    page.add("official", agreements, heading=heading, files=("agreement.tsv",))
    apart, heading = disagreements(track), "Disagreements"
    if not apart.rows:
        why = "The grader and the judgments find the same passages relevant."
        page.add("official", heading=heading, why=why)
        return
    which = f"These {_SHOWN} are furthest apart" if len(apart) > _SHOWN else "Those furthest apart come first"
    lead = (
        f"The grader and the judgments disagree on {len(apart):,} of {plural(agreements.n_both, 'passage')}: "
        f"{relevance_thresholds(track).in_words}. {which}."
    )
    first = with_texts(track, replace(apart, rows=apart.rows[:_SHOWN]))
    page.add("official", Tables({"disagreements": first}), heading=heading, lead=lead)


_COUNTS = "Counts of labels by official judgments, with Cohen's kappa."
AGREEMENT = Feature({"agreement.tsv": (_COUNTS, own_agreement)}, _page)
