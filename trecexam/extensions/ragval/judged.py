"""The report on the judged answers of a track."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from trecexam.extensions.ragval.formats.answers import AnswerRow
from trecexam.extensions.ragval.grader.reading import Scores, read_scores
from trecexam.extensions.ragval.reporting import RagvalReport, report_of
from trecexam.graders.base import Cell
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.grades.graded_track import GradedTrack


#: Count of answers -> note.
_REMARKS = (
    ("empty", "empty answer", ": not judged, and counted as unparsed"),
    ("waiting", "answer", " not judged yet, and not in the report"),
    ("cut", "answer", " judged with a knowledge block that was cut at its end"),
    ("human", "answer", " with a person's score in place of the judge's"),
)


def judged(track: GradedTrack) -> RagvalReport | None:
    """Return the report on the grader's stored grades; None without judged answers. Calls no model.

    A person's rating of an item replaces the score; 0 counts as 1, the lowest score.
    """
    # Same order as in `dropped.py`.
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
        # The system's own name, since a run's name has no white space.
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
            judged_answers.append(replace(row, run_id=run_id, question=question, status=status, **values))
    notes = [f"{plural(counted[what], noun)}{rest}" for what, noun, rest in _REMARKS if counted[what]]
    return report_of(judged_answers).with_notes(*notes) if judged_answers else None


def _scores(stored: list[dict[str, Any]]) -> tuple[Scores | None, str, bool]:
    """Return the scores of an answer, its status, and True if a person gave a score."""
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
