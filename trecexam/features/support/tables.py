"""Support as tables: a row for each citation that was looked at, and one for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from converters.records import Response
from converters.support_labels import LABELS
from trecexam.line.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.line.support import NO_TEXT, Statement, SupportCells, count_codes
from trecexam.scores.leaderboard import Leaderboard
from trecexam.scores.support import SUPPORT, support_scores
from trecexam.tables.table import Table, Value
from trecexam.tables.text import plural, shorten_list

#: Why there is no label.
WHY = {
    NO_TEXT: "no_text",
    MISSING: "not_graded",
    UNPARSED: "unparsed",
    REFUSED: "refused",
    ERROR: "error",
}


def label_of(code: int) -> str:
    """The label that a code stands for, or why there is none."""
    return LABELS[code] if code >= 0 else WHY[code]


def labels_table(cells: SupportCells) -> Table:
    """`run query_id sentence doc_id label`: each citation that was looked at, and sentences that have none.

    A citation out of range has no doc_id and the label `out_of_range`, a sentence without one `uncited`. The
    column `who` is there where people labelled anything.
    """
    rows = tuple(row for place, each in enumerate(cells.statements) for row in _rows(cells, place, each))
    header = ("run", "query_id", "sentence", "doc_id", "label", "who")
    # Without people it is the table that it was before they could label.
    return Table(header, rows) if cells.human else Table(header[:-1], tuple(row[:-1] for row in rows))


def _rows(cells: SupportCells, place: int, statement: Statement) -> Iterator[tuple[Value, ...]]:
    key = statement.run, statement.query_id, statement.place
    codes = cells.codes[place]
    for doc_id, code, human in zip(statement.doc_ids, codes, cells.human_rows(place), strict=True):
        yield *key, doc_id, label_of(code), human.who if human else ""
    yield from [(*key, "", "out_of_range", "")] * (len(cells.weights(place)) - len(codes))
    if not codes and not statement.out_of_range:
        yield *key, "", "uncited", ""


#: What stands behind the measures, see `runs_table`.
_COUNTED = (
    "uncited", "out_of_range", "no_text", "no_label", "words", "sentences", "citations", "over_limit"
)  # fmt: skip


def runs_table(cells: SupportCells, board: Leaderboard, responses: Mapping[str, Sequence[Response]]) -> Table:
    """A row for each run of responses, best weighted precision first.

    Columns: `responses`; the measures with their standard errors; `uncited`, the share of sentences without
    any citation; how many citations are `out_of_range`, and of those looked at have `no_text` or no label
    for another reason (`no_label`); means a response of `words` and `sentences`, and of `citations` a
    sentence; `over_limit`, responses over a limit of their track.
    """
    measures = [column for name in board.measures for column in (name, f"{name}.stderr")]
    of_run: dict[str, list[int]] = {run: [] for run in responses}
    for place, statement in enumerate(cells.statements):
        of_run[statement.run].append(place)
    rows = tuple(
        (
            row.run,
            len(responses[row.run]),
            *(value for score in row.scores for value in (score.mean, score.stderr)),
            *_counted(cells, of_run[row.run], responses[row.run]),
        )
        for row in board.rows
    )
    return Table(("run", "responses", *measures, *_COUNTED), rows)


def queries_table(cells: SupportCells, responses: Mapping[str, Sequence[Response]]) -> Table:
    """A row for each response, by run and query, with the columns of `runs_table` but for standard errors."""
    rows: list[tuple[Value, ...]] = []
    for run in sorted(responses):
        for response in sorted(responses[run], key=lambda each: each.query_id):
            places = cells.responses.get((run, response.query_id), ())
            scores = support_scores([cells.weights(place) for place in places])
            rows.append((run, response.query_id, *scores, *_counted(cells, places, [response])))
    return Table(("run", "query_id", *SUPPORT, *_COUNTED), tuple(rows))


def _counted(cells: SupportCells, places: Sequence[int], responses: Sequence[Response]) -> tuple[Value, ...]:
    """The columns `_COUNTED` of these responses, whose statements are at these places."""
    statements = [cells.statements[place] for place in places]
    counts = count_codes([code for place in places for code in cells.codes[place]])
    return (
        _mean(sum(not (each.citations or each.out_of_range) for each in statements), len(statements)),
        sum(each.out_of_range for each in statements),
        counts["no_text"],
        counts["ungraded"] + counts["unread"],
        _mean(sum(response.n_words for response in responses), len(responses)),
        _mean(len(statements), len(responses)),
        _mean(sum(each.citations for each in statements), len(statements)),
        sum(bool(response.over) for response in responses),
    )


def remarks(
    cells: SupportCells,
    responses: Mapping[str, Sequence[Response]],
    words: int | None,
    *,
    from_file: bool = False,
) -> Iterator[str]:
    """What one must know of the scores, a line each.

    Args:
        words: after which responses are cut; None where they are not.
        from_file: the labels are those of a file, which may lack some.
    """
    if words is not None:
        yield f"responses are cut after {plural(words, 'word')}"
    for run, given in responses.items():
        over = [response for response in given if response.over]
        if over:
            some = shorten_list([response.query_id for response in over], 3)
            first = f"'{over[0].query_id}' has {over[0].over}"
            yield f"{run}: {plural(len(over), 'response')} over a limit of the track ({some}): {first}"
    counts = count_codes([code for codes in cells.codes for code in codes])
    why = {
        "no_text": "of passages without a text, first '{}': add them to the track's passages",
        "ungraded": "without a label in the file" if from_file else "not graded yet",
        "unread": "whose answers say no label, were refused or failed",
    }
    for name, text in why.items():
        if counts[name]:
            some = text.format(next(iter(_without_text(cells)), "")) if name == "no_text" else text
            yield f"{plural(counts[name], 'citation')} {some}; they count as no support"
    if cells.human:
        n, who = cells.counts["by_people"], sorted({row.who for row in cells.human.values()})
        yield f"{plural(n, 'label')} of people in place of the grader's ({shorten_list(who, 3)})"
    outside = sum(statement.out_of_range for statement in cells.statements)
    if outside:
        yield f"{plural(outside, 'citation')} out of range: they name no reference of their response"


def _without_text(cells: SupportCells) -> Iterator[str]:
    for statement, codes in zip(cells.statements, cells.codes, strict=True):
        yield from (doc for doc, code in zip(statement.doc_ids, codes, strict=True) if code == NO_TEXT)


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None
