"""Tables of support: a row per graded citation or run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from converters.records import Response
from converters.support_labels import LABELS
from trecexam.features.leaderboard.board import leaderboard
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.run_grades import NO_TEXT, CitedStatement, cited_statements
from trecexam.grades.sheets import ERROR, MISSING, REFUSED, UNPARSED
from trecexam.results.table import Table, Value
from trecexam.results.text import plural, shorten_list
from trecexam.scores.support import SUPPORT

#: Reasons for a missing label.
WHY = {
    NO_TEXT: "no_text",
    MISSING: "not_graded",
    UNPARSED: "unparsed",
    REFUSED: "refused",
    ERROR: "error",
}
#: Columns after the measures, see `SupportTables.runs`.
_COUNTED = (
    "uncited", "out_of_range", "no_text", "no_label", "words", "sentences", "citations", "over_limit"
)  # fmt: skip


class _Counted(NamedTuple):
    """Counts over a response's sentences."""

    sentences: int
    uncited: int
    out_of_range: int
    citations: int
    no_text: int
    ungraded: int
    unread: int
    words: int
    over: int


class SupportTables:
    """Tables of a support grader's labels of a track's responses."""

    def __init__(self, track: GradedTrack) -> None:
        self.track = track

    def labels(self) -> Table:
        """`run query_id sentence doc_id label`: each graded citation, and sentences without one.

        A citation out of range has no doc_id and the label `out_of_range`, a sentence without one `uncited`.
        The column `who` exists if people labelled anything.
        """
        rows: dict[tuple[str, str], list[tuple[Value, ...]]] = {}
        for run, response, statements in self._statements():
            rows[run, response.query_id] = [row for each in statements for row in _rows(each)]
        header = ("run", "query_id", "sentence", "doc_id", "label", "who")
        table = tuple(row for key in self._keys for row in rows.get(key, ()))
        # Without people it is the table that it was before they could label.
        by_people = bool(self.track.overrides.ratings)
        return Table(header, table) if by_people else Table(header[:-1], tuple(row[:-1] for row in table))

    def runs(self) -> Table:
        """Return a row for each run of responses, best weighted precision first.

        Columns: `responses`; the measures with their standard errors; `uncited`, the share of sentences
        without any citation; how many citations are `out_of_range`, and of those looked at have `no_text` or
        no label for another reason (`no_label`); means a response of `words` and `sentences`, and of
        `citations` a sentence; `over_limit`, responses over a limit of their track.
        """
        runs = [run for run in self.track.runs if run in self._responses]
        board = leaderboard(self.track, SUPPORT, runs=runs)
        measures = [column for name in board.measures for column in (name, f"{name}.stderr")]
        rows = tuple(
            (
                row.run,
                len(self._responses[row.run]),
                *(value for score in row.scores for value in (score.mean, score.stderr)),
                *_columns([self._counted[row.run, each.query_id] for each in self._responses[row.run]]),
            )
            for row in board.rows
        )
        return Table(("run", "responses", *measures, *_COUNTED), rows)

    def notes(self) -> Iterator[str]:
        """Notes on the scores, one per line."""
        track, words = self.track, self.track.config.track.truncate
        if words is not None:
            yield f"responses are cut after {plural(words, 'word')}"
        for run, run_responses in self._responses.items():
            over = [response for response in run_responses if response.over]
            if over:
                some = shorten_list([response.query_id for response in over], 3)
                first = f"'{over[0].query_id}' has {over[0].over}"
                yield f"{run}: {plural(len(over), 'response')} over a limit of the track ({some}): {first}"
        why = {
            "no_text": "of passages without a text, first '{}': add the texts to the track's passages",
            "ungraded": "not graded yet",
            "unread": "with an answer that has no label, was refused or failed",
        }
        for name, text in why.items():
            n = sum(getattr(counted, name) for counted in self._counted.values())
            if n:
                some = text.format(self._without_text()) if name == "no_text" else text
                yield f"{plural(n, 'citation')} {some}; they count as no support"
        if track.overrides.ratings:
            summary = track.override_summary()
            who = shorten_list(summary["who"], 3)
            yield f"{plural(summary['cells'], 'label')} of people in place of the grader's ({who})"
        outside = sum(counted.out_of_range for counted in self._counted.values())
        if outside:
            yield f"{plural(outside, 'citation')} out of range: their response has no such reference"

    @property
    def _responses(self) -> Mapping[str, tuple[Response, ...]]:
        return self.track.responses

    @property
    def _keys(self) -> Iterator[tuple[str, str]]:
        """(run, query_id) of the responses, by run, in each file's order."""
        return ((run, each.query_id) for run, of_run in self._responses.items() for each in of_run)

    def _statements(self) -> Iterator[tuple[str, Response, list[CitedStatement]]]:
        """Yield each response with its sentences, query by query."""
        return cited_statements(self.track, self._responses, self.track.bank.query_ids)

    @cached_property
    def _counted(self) -> Mapping[tuple[str, str], _Counted]:
        counted = {(run, each.query_id): _count(each, cited) for run, each, cited in self._statements()}
        return {key: counted[key] for key in self._keys}

    def _without_text(self) -> str:
        """Return the first cited passage that has no text."""
        for _, _, statements in self._statements():
            for each in statements:
                for doc_id, code in zip(each.statement.doc_ids, each.codes, strict=True):
                    if code == NO_TEXT:
                        return doc_id
        return ""


def label_of(code: int) -> str:
    """Return the label of a code, or the reason why there is none."""
    return LABELS[code] if code >= 0 else WHY[code]


def _rows(cited: CitedStatement) -> Iterator[tuple[Value, ...]]:
    statement = cited.statement
    key = statement.run, statement.query_id, statement.place
    for doc_id, code, human in zip(statement.doc_ids, cited.codes, cited.human, strict=True):
        yield *key, doc_id, label_of(code), human.who if human else ""
    yield from [(*key, "", "out_of_range", "")] * (len(cited.weights) - len(cited.codes))
    if not cited.codes and not statement.out_of_range:
        yield *key, "", "uncited", ""


def _count(response: Response, cited: Sequence[CitedStatement]) -> _Counted:
    statements = [each.statement for each in cited]
    codes = [code for each in cited for code in each.codes]
    return _Counted(
        len(statements),
        sum(not (each.citations or each.out_of_range) for each in statements),
        sum(each.out_of_range for each in statements),
        sum(each.citations for each in statements),
        codes.count(NO_TEXT),
        codes.count(MISSING),
        sum(NO_TEXT < code <= UNPARSED for code in codes),
        response.n_words,
        int(bool(response.over)),
    )


def _columns(responses: Sequence[_Counted]) -> tuple[Value, ...]:
    """Return the columns `_COUNTED` of these responses."""

    def total(name: str) -> int:
        return sum(getattr(each, name) for each in responses)

    return (
        _mean(total("uncited"), total("sentences")),
        total("out_of_range"),
        total("no_text"),
        total("ungraded") + total("unread"),
        _mean(total("words"), len(responses)),
        _mean(total("sentences"), len(responses)),
        _mean(total("citations"), total("sentences")),
        total("over"),
    )


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None
