"""`track.judging`: a campaign of assessors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trecexam.extensions.campaign.agreement import assessor_agreement
from trecexam.extensions.campaign.exporting import export_judgments, import_judgments
from trecexam.extensions.campaign.planning import (
    check_plan,
    divided,
    done_tasks,
    passages_to_judge,
    write_campaign,
)
from trecexam.grades.graded_track import has_bank
from trecexam.inputs.typed_text import MAX_WHO, typed
from trecexam.results.result import Tables
from trecexam.track_groups import Group


class JudgingAccessor(Group):
    """Plan and agreement of a campaign, and its judgments as files."""

    def plan(
        self,
        assessors: Sequence[str],
        *,
        topics_each: int | None = None,
        overlap: float = 0.0,
        budget: int | None = None,
        passages: Path | str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Tables:
        """Divide the passages of the pool among assessors, and write the plan into judging.tsv.

        A task is a pooled passage, or with `unit = "response"` a response: judged as a whole if the track has
        a scale of judgments, else on all items. A topic stays with one assessor, and all assessors get about
        as many tasks. Judged passages are left out; of passages with equal text, one is planned.

        A second call keeps finished tasks and the assessors of begun topics. The same arguments give the same
        plan.

        Args:
            assessors: names of the assessors, at least one.
            topics_each: maximum number of topics per assessor.
            overlap: share of tasks, 0..1, that a second assessor judges, too; drawn at random.
            budget: total number of tasks, overlap counted twice, spread evenly over topics.
            passages: table with columns query_id and doc_id, as from `judge-next`, of passages to plan in
                this order; None for all, in the order of `judge_next`.
            progress: as for `judge_next`.

        Raises:
            TrecexamError: incompatible arguments, or a plan or list that cannot be read, written or used.
        """
        names = [typed("an assessor's name", name, MAX_WHO) for name in assessors]
        check_plan(names, topics_each, overlap, budget)
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        done = done_tasks(graded)
        topics, notes = passages_to_judge(graded, done, passages, progress)
        rows = divided(topics, names, topics_each=topics_each, overlap=overlap, budget=budget, done=done)
        written = write_campaign(graded, rows, topics, len(done), notes)
        return self._track.with_grader_note(written, graded.name)

    def agreement(self) -> Tables:
        """Compare the ratings of all cells that at least two people rated, planned or not.

        Each person's last rating counts, whatever counts for the track. "Cannot judge" and adjudications are
        no ratings.
        """
        graded = self._track.graded(has_bank, bank_needed=False)
        return self._track.with_grader_note(assessor_agreement(graded), graded.name)

    def export(self, folder: Path | str) -> Tables:
        """Write what people judged into a folder: qrels.txt, qrels-6.txt and judgments.tsv.

        A passage's label is the judgment that counts, on the scale of [judging] or of the official judgments.
        Without such judgments, labels are made from people's ratings by the rule of [scores]. A passage
        without a rating that counts has no line. qrels-6.txt has the columns of TREC RAG 2025, `query_id Q0
        doc_id label confidence run_id`: confidence is the share of assessors with this label, run_id their
        names joined by +.

        Raises:
            TrecexamError: a file cannot be written, an id contains white space, or a file of people's ratings
                lacks its header line. Nothing is written then.
        """
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        return self._track.with_grader_note(export_judgments(graded, folder), graded.name)

    def take_in(self, path: Path | str) -> Tables:
        """Add the judgments of a table in the form of `export`; skip existing judgments.

        Lines are appended to overrides.tsv, judgments of whole passages on the track's scale to
        judgments.tsv. Lines that an update would reject, such as for unknown queries, are not added.

        Raises:
            TrecexamError, ConversionError: the table or a file of the track cannot be read or written.
        """
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        return self._track.with_grader_note(import_judgments(graded, path), graded.name)
