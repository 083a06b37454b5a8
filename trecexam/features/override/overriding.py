"""Add people's ratings to overrides.tsv and judgments.tsv, list them, and report them in out/."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from converters.errors import ConversionError
from converters.overrides import ADJUDICATED, UNDONE, read_overrides
from converters.records import HumanRating, Item
from trecexam.bank.model import Bank, passage_digest
from trecexam.errors import RatingConflictError, TrecexamError, did_you_mean, rejected_notes
from trecexam.feature import Feature
from trecexam.features.override.added_lines import (
    add_lines,
    earlier_opinion,
    lines_of_writer,
    without_circumstances,
)
from trecexam.files.track_lock import exclusive_lock
from trecexam.folder import TrackFolder
from trecexam.grades.diagnostics import all_rejected
from trecexam.grades.graded_track import GradedTrack, LoadedTrack, with_texts
from trecexam.grades.official import official_judgments
from trecexam.inputs.kind import ItemSources
from trecexam.inputs.overrides import (
    COUNTS,
    REPLACED,
    JudgingScale,
    Overrides,
    digest_of,
    resolve,
    takes_back,
)
from trecexam.inputs.typed_text import MAX_NOTE, MAX_WHO, MAX_WHY, refuse_controls, typed
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table
from trecexam.results.text import shorten_list
from trecexam.scores.labels import labels


@dataclass(frozen=True)
class Overridden:
    """A rating in overrides.tsv or judgments.tsv, and its effect.

    Attributes:
        row: the rating.
        before: the human rating that counted until now, or None.
        written: False if the person's last rating was the same.
        after: the human rating that counts now, or None.
        machine: the grader's rating of the cell or label of the passage, or None.
        words: names of the ratings 0, 1 ...; () if ratings have no names.
        official: the official judgment of a passage judged as a whole, which the rating replaces.
    """

    row: HumanRating
    before: HumanRating | None
    written: bool
    after: HumanRating | None
    machine: int | None = None
    words: tuple[str, ...] = ()
    official: int | None = None


def seen_token(row: HumanRating | None) -> str:
    """Return a fingerprint of the rating that counts; "none" without a rating."""
    if row is None:
        return "none"
    return hashlib.sha256(json.dumps(row).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class QueryToRate:
    """A query for a person who rates its passages.

    Attributes:
        items: active items; `retired` has the retired items. Both are empty for an unknown query.
        texts: doc_id -> text of the pooled passages; None for a passage that is not graded.
        depth: depth of the pool.
        max_rating: the best rating on the grader's scale.
        scale: scale of judgments of whole passages; None for the grader's scale.
        query_ids: all queries of the bank, to suggest one with a similar id.
        cells: (query_id, doc_id, item_id) of all cells; None if every passage has every item.
    """

    query_id: str
    items: tuple[Item, ...]
    retired: tuple[Item, ...]
    texts: Mapping[str, str | None]
    depth: int
    max_rating: int
    query_ids: tuple[str, ...] = ()
    cells: frozenset[tuple[str, str, str]] | None = None
    scale: JudgingScale | None = None


def has_cell(track: GradedTrack, query_id: str, doc_id: str, item: str | int) -> bool:
    """Return True if the grader rates this item of the passage; "" stands for the whole passage."""
    sheet, item = track.sheets.get(query_id), str(item)
    if sheet is None or doc_id not in sheet.row_of:
        return False
    if track.asked.citing is not None:
        return item in sheet.column_of or item.rpartition(":")[0] in track.responses
    return not item or item in sheet.column_of or (item.isdigit() and 1 <= int(item) <= len(sheet.items))


def rating_of(text: str, track: GradedTrack, *, whole: bool = False) -> int:
    """Return a rating from its number or its name, whole or up to the first "_".

    `whole`: for a whole passage, with names of the scale of judgments, else the grader's.
    """
    word, best, words = text.strip().lower(), track.grader.scale.max_rating, track.kind.words
    if whole and track.judging_scale is not None:
        best, words = track.judging_scale.best, track.judging_scale.names
    rating_of_word = {each.partition("_")[0]: n for n, each in enumerate(words)}
    rating_of_word |= {each.lower(): n for n, each in enumerate(words)}
    if word in rating_of_word:
        return rating_of_word[word]
    if word.isascii() and word.isdigit() and len(word) < 10:
        return int(word)
    more = f", or {', '.join(words)}" if words else ""
    raise TrecexamError(f"'{text}' is not a rating: give 0..{best}{more}")


def override(
    track: GradedTrack,
    query_id: str,
    doc_id: str,
    rating: int | str | None,
    *,
    item: str | int = "",
    who: str,
    why: str,
    seen: str | None = None,
) -> Overridden:
    """Replace the grader's rating of a cell or a whole passage with a person's."""
    item = str(item)
    if isinstance(rating, str):
        rating = rating_of(rating, track, whole=not item)
    if track.asked.citing is None:
        query = _to_rate(track, query_id)
    else:
        query = _cited_to_rate(track, query_id, item, doc_id)
        item = query.items[0].item_id
    overridden = take(track.folder, query, doc_id, item, rating, who, why, seen)
    official = None
    if overridden.row.scale and track.official is not None:
        official = official_judgments(track).judged.get(query_id, {}).get(doc_id)
    machine = _machine(track, {query_id}).get(overridden.row[:3])
    return replace(overridden, machine=machine, words=track.kind.words, official=official)


def _cited_to_rate(track: GradedTrack, query_id: str, name: str, doc_id: str) -> QueryToRate:
    """Return an item and its cited passages for a person's rating."""
    if not name:
        raise TrecexamError(
            f"the grader {track.name} rates no passage as a whole: name the {track.kind.cell_noun} by `item`"
        )
    column_of = track.sheets[query_id].column_of if query_id in track.sheets else {}
    if name in column_of:
        item = track.bank.items[query_id][column_of[name]]
    else:
        assert track.kind.item_named is not None
        sources = ItemSources(track.bank, track.query_texts, track.responses, track.config)
        item = track.kind.item_named(sources, query_id, name)
    assert track.asked.citing is not None
    sheet = track.sheets[item.query_id]
    column = sheet.column_of.get(item.item_id)
    cited = () if column is None else track.asked.citing[item.query_id][column]
    if doc_id not in cited:
        looked_at = f"those looked at are {shorten_list(cited)}" if cited else "nothing is looked at"
        raise TrecexamError(
            f"'{doc_id}' is not cited by this sentence, or not looked at: {looked_at}", path=track.folder.root
        )
    texts = {each: sheet.text_of(each) for each in cited}
    return QueryToRate(item.query_id, (item,), (), texts, 0, track.grader.scale.max_rating)


def _to_rate(track: GradedTrack, query_id: str) -> QueryToRate:
    bank, depth = track.bank, track.config.track.depth
    live, retired = bank.items.get(query_id, ()), bank.retired.get(query_id, ())
    texts = {d: track.sheets[query_id].text_of(d) for d in track.sheets[query_id].doc_ids} if live else {}
    best, scale = track.grader.scale.max_rating, track.judging_scale
    return QueryToRate(query_id, live, retired, texts, depth, best, bank.query_ids, scale=scale)


def take(
    folder: TrackFolder,
    query: QueryToRate,
    doc_id: str,
    item: str,
    rating: int | None,
    who: str,
    why: str,
    seen: str | None = None,
    *,
    cannot: bool = False,
    seconds: float | None = None,
    note: str = "",
    adjudicates: bool = False,
    own_only: bool = False,
    is_current: Callable[[], bool] = lambda: True,
) -> Overridden:
    """Store a rating of a query as a person sees it; read only this query's ratings.

    Args:
        seen: `seen_token` of the rating that counted when the person looked; None skips the check.
        cannot: True if the person cannot judge, without a rating.
        seconds: working time.
        adjudicates: True if the person decides between other people's ratings, see `rule` in [judging].
        own_only: ignore other people's ratings: `before` and `seen` are the person's own last rating, `after`
            is None, and only the person's own rating can be withdrawn.
        is_current: returns True if everything else that the person saw is unchanged; called under the lock.
            False raises a `RatingConflictError`, too.
    """
    who, why = typed("a name", who, MAX_WHO), typed("a reason", why, MAX_WHY)
    note = typed("a note", note, MAX_NOTE)
    if not who or not why:
        raise TrecexamError(f"a rating needs {'a reason (why)' if who else 'a name (who)'}")
    rated_item = _checked(folder, query, doc_id, item, rating)
    item_id = rated_item.item_id if rated_item else ""
    for each_id in (query.query_id, doc_id, item_id):
        refuse_controls("an id in overrides.tsv", each_id)
    text = query.texts[doc_id]
    row = HumanRating(
        *(query.query_id, doc_id, item_id, rating, who, why),
        datetime.now(UTC).isoformat(timespec="seconds"),
        "" if text is None else passage_digest(text).hex(),
        digest_of(rated_item) if rated_item else "",
        seconds,
        note,
        ADJUDICATED if adjudicates else "",
        cannot,
        "" if rated_item or query.scale is None else str(query.scale),
    )
    path = folder.overrides() if rated_item or query.scale is None else folder.judgments()
    with exclusive_lock(folder.shared_state / "overrides.lock"):
        # Another person may have rated since.
        overrides = _resolved(folder, query, path, who if own_only else "")
        before = overrides.ratings.get(row[:3])
        spoken = lines_of_writer(overrides, query.texts, row)
        mine = spoken[-1].row if spoken and not takes_back(spoken[-1].row) else None
        looked_at = mine if own_only else before
        if (seen is not None and seen_token(looked_at) != seen) or not is_current():
            reason = "the rating that you saw was withdrawn meanwhile"
            if looked_at is not None:
                reason = f"meanwhile {looked_at.who} rated it {looked_at.rating}: {looked_at.why}"
            raise RatingConflictError(reason, looked_at, path=path)
        if takes_back(row):
            if mine is None and (own_only or before is None):
                raise TrecexamError("there is no rating to withdraw", path=path)
            theirs = before is not None and before.who != who and folder.config.judging.rule == "latest"
            if mine is not None and not adjudicates and (own_only or not theirs):
                other_rows = (each.row for each in overrides.decisions if each.row.who != who)
                earlier = earlier_opinion(spoken)
                if earlier is not None:
                    row = earlier._replace(when=row.when, seconds=None, kind=UNDONE)
                elif own_only or any(other.item_id == item_id for other in other_rows):
                    # Without the kind, this would withdraw other people's ratings, too.
                    row = row._replace(kind=UNDONE)
        elif (
            mine is not None
            and (own_only or spoken[-1].state != REPLACED)
            and without_circumstances(mine) == without_circumstances(row)
        ):
            return Overridden(mine, before, False, before)
        add_lines(path, [row])
        after = None if own_only else _resolved(folder, query, path).ratings.get(row[:3])
        return Overridden(row, before, True, after)


def add_rows(folder: TrackFolder, path: Path, rows: Sequence[HumanRating]) -> int:
    """Add new lines to overrides.tsv or judgments.tsv; return the number of added lines.

    A line may occur twice in `rows` and in the file: rated, withdrawn and rated again.
    """
    with exclusive_lock(folder.shared_state / "overrides.lock"):
        return add_lines(path, rows, known_too=False)


def _resolved(folder: TrackFolder, query: QueryToRate, path: Path, who: str = "") -> Overrides:
    """Return the current ratings of a query in a file; with `who` only this person's."""
    query_id, judging = query.query_id, folder.config.judging
    try:
        lines = read_overrides(path, lambda refused: None, naming=(who, query_id) if who else (query_id,))
        rows = [(line, row) for line, row in lines if row.query_id == query_id and who in ("", row.who)]
    except ConversionError:
        # No file yet; errors of the file are raised when a line is added.
        return Overrides()
    bank = Bank({query_id: query.items}, {query_id: query.retired})
    texts = {doc_id: text for doc_id, text in query.texts.items() if text is not None}
    pool = {query_id: tuple(query.texts)}
    own_scale = query.scale if path == folder.judgments() else None
    return resolve(
        rows, folder.shown(path), bank, pool, texts, query.max_rating, judging.rule, own_scale=own_scale,
        cited=None if own_scale else query.cells,
    )  # fmt: skip


def human_ratings(track: LoadedTrack) -> Tables:
    """Return people's ratings, as in `human_table`, and rejected lines with reasons.

    With several graders, the first column is the grader. Judgments on the scale of [judging] appear once,
    with the first grader that labels documents.
    """
    on_scale = track.of_documents
    tables = {
        name: human_table(each, judgments=each is on_scale) for name, each in track.graded_tracks.items()
    }
    table = tables[on_scale.name]
    read = {each.folder.shown(each.folder.overrides()) for each in track.graded_tracks.values()}
    refused = tuple(row for row in all_rejected(track) if row.file in read)
    notes = (*rejected_notes(refused), *map(str, track.unable_notes))
    if track.is_single:
        about = track.first.override_summary()
    else:
        rows = tuple((name, *row) for name, of_grader in tables.items() for row in of_grader.rows)
        layout = replace(table.layout, keys=("grader", *table.layout.keys))
        table = Table(("grader", *table.header), rows, layout=layout)
        about = {"graders": {name: each.override_summary() for name, each in track.graded_tracks.items()}}
    return Tables({"ratings": table}, notes, about=about, rejected=refused)


def human_table(track: GradedTrack, *, judgments: bool = True) -> Table:
    """Return people's ratings beside the grader's, and which ratings count.

    There is a row for every readable line of overrides.tsv and, if people judge passages on another scale
    than the grader's, of judgments.tsv. Below a line that counts are the other pooled passages with the same
    text, for which the line counts, too. With [judging] in the settings, more columns have further fields and
    the rule.

    Args:
        judgments: include lines of judgments.tsv.
    """
    machine = _machine(track, {decision.row.query_id for decision in track.overrides.decisions})
    has_judging, rule = "judging" in track.config.model_fields_set, track.config.judging.rule
    rows = []
    for people in (track.overrides, track.judgments) if judgments else (track.overrides,):
        alike: dict[HumanRating, list[HumanRating]] = {}
        for (_, doc_id, _), row in people.ratings.items():
            if doc_id != row.doc_id:
                alike.setdefault(row, []).append(row._replace(doc_id=doc_id))
        for _, decided, state in people.decisions:
            for row in (decided, *(alike.get(decided, ()) if state == COUNTS else ())):
                rating = None if people is track.judgments else machine.get(row[:3])
                more = (row.seconds, row.note, row.kind, rule) if has_judging else ()
                rows.append((*row[:4], rating, row.who, row.why, row.when, *more, state))
    keys = ("query_id", "doc_id", "item_id")
    more_columns = ("seconds", "note", "kind", "rule") if has_judging else ()
    return Table(
        (*keys, "rating", "machine", "who", "why", "when", *more_columns, "state"),
        tuple(rows),
        layout=Layout(keys, ("rating", "machine", "who", "state", "why"), without=("when",)),
    )


def _checked(
    folder: TrackFolder, query: QueryToRate, doc_id: str, item: str, rating: int | None
) -> Item | None:
    """Return the rated item; None for a whole passage."""
    root, query_id, items = folder.root, query.query_id, query.items
    if not items:
        reason = f"no query '{query_id}' in the bank{did_you_mean(query_id, query.query_ids, before='; ')}"
        if query.retired:
            reason = f"all items of query '{query_id}' are retired"
        raise TrecexamError(reason, path=root)
    if doc_id not in query.texts:
        hint = did_you_mean(doc_id, query.texts, before="; ")
        raise TrecexamError(
            f"'{doc_id}' is not in the pool of query '{query_id}', the first {query.depth} of each run{hint}",
            path=root,
        )
    if query.cells is not None and (query_id, doc_id, item) not in query.cells:
        what = (
            f"item '{item[:80]}' is not graded with '{doc_id}'" if item else "no passage is rated as a whole"
        )
        raise TrecexamError(f"{what}: rate the item with a passage that cites it", path=root)
    best, whose, names = query.max_rating, "grader's", ""
    if not item and query.scale is not None:
        best, whose = query.scale.best, "track's"
        names = f" ({', '.join(f'{n} {name}' for n, name in enumerate(query.scale.names))})"
    if rating is not None and not 0 <= rating <= best:
        raise TrecexamError(f"the rating {rating} is not on the {whose} scale, 0..{best}{names}", path=root)
    if not item:
        return None
    for bank_item in items:
        if bank_item.item_id == item:
            return bank_item
    if any(bank_item.item_id == item for bank_item in query.retired):
        raise TrecexamError(f"item '{item[:80]}' of query '{query_id}' is retired", path=root)
    # Python refuses to convert more than 4,300 digits.
    index = int(item) if item.isascii() and item.isdigit() and len(item) < 10 else 0
    if 1 <= index <= len(items):
        return items[index - 1]
    hint = did_you_mean(item, [each.item_id for each in items], before="; ")
    raise TrecexamError(
        f"query '{query_id}' has no item '{item[:80]}'{hint}; an index, 1..{len(items)}, will do too",
        path=root,
    )


def _machine(track: GradedTrack, query_ids: set[str]) -> dict[tuple[str, str, str], int]:
    """Return (query_id, doc_id, item_id or "") -> the grader's rating, or label of the passage."""
    bank, scores = track.bank, track.config.scores
    machine: dict[tuple[str, str, str], int] = {}
    if track.asked.citing is not None:
        for query_id in query_ids & bank.items.keys():
            sheet = track.sheets[query_id]
            rated = sheet.flat() >= 0
            cells = zip(*sheet.where(rated), sheet.flat()[rated].tolist(), strict=True)
            machine.update(
                ((query_id, sheet.doc_ids[row], sheet.items[column].item_id), code)
                for row, column, code in cells
            )
        return machine
    for query in track.ratings(sorted(query_ids & bank.items.keys()), human=False):
        by_label = labels(query, scores.label, scores.min_rating, scores.min_answers)
        machine.update(((query.query_id, doc_id, ""), label) for doc_id, label in by_label.items())
        for doc_id, ratings in zip(query.doc_ids, query.ratings.tolist(), strict=True):
            for item, rating in zip(bank.items[query.query_id], ratings, strict=True):
                if rating >= 0:
                    machine[query.query_id, doc_id, item.item_id] = rating
    return machine


#: Rule of [judging] -> description.
_RULES = {
    "latest": "the last",
    "majority": "the most frequent one, the lowest in a tie",
    "adjudicated": "the one on which all agree, else the adjudicated one",
}


def _human(track: GradedTrack) -> Tables | None:
    has_ratings = track.overrides.decisions or track.judgments.decisions
    return Tables({"human": human_table(track)}) if has_ratings else None


def _page(track: GradedTrack, page: Page) -> None:
    """Add the end of the section "grades"."""
    human = _human(track)
    rule = track.config.judging.rule if "judging" in track.config.model_fields_set else None
    page.add(
        "grades",
        None if human is None else Tables({"human": with_texts(track, human.table)}),
        # If no extension has begun the section.
        title="Grades",
        heading="People's ratings",
        lead=""
        if rule is None
        else f"If several people rate the same cell, the rule `{rule}` decides which rating counts: "
        f"{_RULES[rule]}.",
        why="No person has rated anything; `trecexam override` does." if human is None else "",
        files=() if human is None else ("human.tsv",),
    )


_HUMAN = "People's ratings next to the grader's: who, why, and which of them count."
OVERRIDE = Feature({"human.tsv": (_HUMAN, _human)}, _page, of_any_kind=True)
