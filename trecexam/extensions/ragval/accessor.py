"""`track.ragval`: questions from knowledge blocks, answers, and their judgments."""

from __future__ import annotations

from trecexam.calls import Accessor, asking, estimating, named_as_called
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.answering import answers_job
from trecexam.extensions.ragval.formats.knowledge import KINDS
from trecexam.extensions.ragval.judged import judged
from trecexam.extensions.ragval.questions import questions_job
from trecexam.extensions.ragval.reporting import RagvalReport, report_of


@named_as_called
class RagvalAccessor(Accessor):
    """Answers judged for truthfulness and relevance."""

    write_questions = asking(questions_job)
    estimate_questions = estimating(questions_job)
    answer = asking(answers_job)
    estimate_answers = estimating(answers_job)

    def report(self) -> RagvalReport:
        """The report on systems by their judged answers; calls no model.

        Raises:
            TrecexamError, ConversionError: no answer is judged, or the track cannot be read.
        """
        root, track = self.folder.root, self._loader.load()
        if not track.traits.item_kinds >= frozenset(KINDS):
            raise TrecexamError(
                'the track has no grader that judges answers: set `name = "ragval"` in [grader]', path=root
            )
        answers = judged(track)
        if not answers.rows:
            raise TrecexamError(f"no answer is judged yet: run `trecexam watch {root} --once`", path=root)
        return report_of(answers.rows).with_notes(*answers.remarks())
