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

        A task is a pooled passage, or with `unit = "response"` a response: as a whole where the track has a
        scale of judgments, else with all its items. A topic stays with one assessor, and all get about as
        many tasks. Passages that are judged already are left out; of passages with one text one is judged.

        Planned again, finished tasks stay, and a topic stays with the assessor who began it. The same
        arguments give the same plan.

        Args:
            assessors: their names, at least one.
            topics_each: at most so many topics of each assessor.
            overlap: the share of tasks, 0..1, drawn at random, that a second assessor gets, too.
            budget: tasks in all, the overlap counted twice; evenly over topics.
            passages: plan only those of this table with the columns query_id and doc_id, as `judge-next`
                writes it, in its order; None: all, in the order of `judge_next`.
            progress: as of `judge_next`.

        Raises:
            TrecexamError: arguments do not go together, or a plan or list cannot be read, written or used.
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
        """Compare the ratings of the cells that at least two people rated, planned or not.

        Each person's last rating counts, whatever counts for the track. "Cannot judge" and decisions between
        people are no ratings.
        """
        graded = self._track.graded(has_bank, bank_needed=False)
        return self._track.with_grader_note(assessor_agreement(graded), graded.name)

    def export(self, folder: Path | str) -> Tables:
        """Write what people judged into a folder: qrels.txt, qrels-6.txt and judgments.tsv.

        A passage's label is the judgment that counts, on the scale of [judging] or of the official judgments.
        Where nobody judged on such a scale, it is made of people's ratings by the rule of [scores]. A passage
        without a rating that counts has no line. qrels-6.txt has the columns of TREC RAG 2025, `query_id Q0
        doc_id label confidence run_id`: the share of the assessors who gave this label, and their names with
        + between them.

        Raises:
            TrecexamError: a file cannot be written, an id has white space in it, or a file of people's
                ratings has no header line. Nothing is written then.
        """
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        return self._track.with_grader_note(export_judgments(graded, folder), graded.name)

    def take_in(self, path: Path | str) -> Tables:
        """Add the judgments of a table, as `export` writes it, and skip existing ones.

        Lines go to the end of overrides.tsv; judgments of whole passages on the track's scale to that of
        judgments.tsv. A line that an update would reject, as of an unknown query, is not added.

        Raises:
            TrecexamError, ConversionError: the table or a file of the track cannot be read or written.
        """
        graded = self._track.graded(has_bank, documents=True, bank_needed=False)
        return self._track.with_grader_note(import_judgments(graded, path), graded.name)
