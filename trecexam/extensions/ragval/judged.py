"""The judged answers of a track, as rows of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from trecexam.extensions.ragval.formats.answers import AnswerRow
from trecexam.extensions.ragval.grader.reading import Scores, read_scores
from trecexam.graders.base import Cell
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.grades.graded_track import GradedTrack


@dataclass(frozen=True)
class JudgedAnswers:
    """The judged answers of a track.

    Attributes:
        rows: an answer each, by run and question; those not judged yet are not among them.
        empty: how many of them are empty, and were not judged.
        waiting: how many answers are not judged yet.
        cut: how many of the judged ones were judged by a block that was cut at its end.
        human: how many have a score that a person gave in place of the judge's.
    """

    rows: tuple[AnswerRow, ...]
    empty: int = 0
    waiting: int = 0
    cut: int = 0
    human: int = 0

    def remarks(self) -> Iterator[str]:
        """Notes on the answers, one per line."""
        if self.empty:
            yield f"{plural(self.empty, 'empty answer')}: not judged, and counted as unparsed"
        if self.waiting:
            yield f"{plural(self.waiting, 'answer')} not judged yet, and not in the report"
        if self.cut:
            yield f"{plural(self.cut, 'answer')} judged with a knowledge block that was cut at its end"
        if self.human:
            yield f"{plural(self.human, 'answer')} with a person's score in place of the judge's"

    def as_json(self) -> dict[str, Any]:
        """The counts."""
        statuses = Counter(row.status for row in self.rows)
        return {
            "answers": len(self.rows) + self.waiting,
            "ok": statuses["ok"],
            "unparsed": statuses["unparsed"] - self.empty,
            "refused": statuses["refused"],
            "error": statuses["error"],
            "empty": self.empty,
            "not_judged_yet": self.waiting,
            "blocks_cut": self.cut,
            "rated_by_people": self.human,
        }


def judged(track: GradedTrack) -> JudgedAnswers:
    """The judged answers from the grader's stored grades; needs `load` first. Calls no model.

    A person's rating of an item replaces that score; a 0, which is none, counts as 1.
    """
    # As `dropped.py` reads them.
    of_runs = cast("Mapping[str, tuple[AnswerRow, ...]]", track.inputs.dropped.answers)
    question_ids = {row.question_id for rows in of_runs.values() for row in rows}
    grades: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for grade in track.grade_rows(question_ids):
        grades.setdefault((grade["query_id"], grade["doc_id"]), []).append(grade)
    judged_answers: list[AnswerRow] = []
    counted: Counter[str] = Counter()
    prompt = track.grader.prompt
    n_runs_of = Counter(rows[0].run_id for rows in of_runs.values())
    for name, answers in of_runs.items():
        run = track.runs[name]
        # As the system calls itself; a run's name has no white space.
        run_id = answers[0].run_id if n_runs_of[answers[0].run_id] == 1 else name
        for row in sorted(answers, key=lambda answer: answer.question_id):
            ranking = run.ranking(row.question_id, 1)
            stored = grades.get((row.question_id, ranking[0]), []) if ranking else []
            if stored:
                scores, status, human = _scores(stored)
                counted["human"] += human
                if prompt is not None:
                    item = track.bank.items[row.question_id][0]
                    counted["cut"] += prompt(Cell(row.question_id, "", ranking[0], row.answer, item)).cut
            elif ranking and track.sheets[row.question_id].text_of(ranking[0]) is not None:
                counted["waiting"] += 1
                continue
            else:
                scores, status = None, "unparsed"
                counted["empty"] += 1
            question = track.query_texts.get(row.question_id, "")
            values = {} if scores is None else scores._asdict()
            judged_answers.append(
                replace(row, run_id=run_id, question=question, occurrence=1, status=status, **values)
            )
    return JudgedAnswers(tuple(judged_answers), **counted)


def _scores(stored: list[dict[str, Any]]) -> tuple[Scores | None, str, bool]:
    """The scores of an answer, its status, and whether a person gave one."""
    status = next((grade["status"] for grade in stored if grade["status"] != "ok"), "ok")
    read = read_scores(stored[0]["answer"]) if status == "ok" else None
    values: Mapping[str, float] = {} if read is None else read._asdict()
    human = {
        grade["item_id"].rpartition("/")[2]: max(1.0, float(grade["human_rating"]))
        for grade in stored
        if grade.get("human_rating") is not None
    }
    values = {**values, **human}
    if len(values) < len(Scores._fields):
        return None, "unparsed" if status == "ok" else status, bool(human)
    return Scores(**values), "ok", bool(human)
