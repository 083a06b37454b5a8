"""`track.judging`: a campaign of assessors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.extensions.campaign.agreement import assessor_agreement
from trecexam.extensions.campaign.exporting import export_judgments, import_judgments
from trecexam.extensions.campaign.planning import plan_judging
from trecexam.track_groups import Group

if TYPE_CHECKING:
    from trecexam.extensions.campaign.agreement import AssessorAgreement
    from trecexam.extensions.campaign.exporting import ExportedJudgments, ImportedJudgments
    from trecexam.extensions.campaign.planning import PlannedCampaign


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
    ) -> PlannedCampaign:
        """Divides the passages of the pool among assessors, and writes the plan into judging.tsv.

        A task is a pooled passage (with `unit = "response"` a whole response) with all its items,
        see `asked_items`. A topic stays with one assessor, and all have much the same number of tasks. What
        is judged already is in no new task: by people here, or, where passages are judged as a whole,
        officially. Of passages with one text one is judged.

        A plan with finished work is kept as far as it goes, see `divided`; else it is made anew. The same
        arguments give the same plan.

        Args:
            assessors: their names, at least one.
            topics_each: topics of each assessor at the most.
            overlap: the share of tasks, 0..1, drawn at random, that a second assessor gets, too.
            budget: tasks in all, the overlap counted twice; evenly over topics.
            passages: only those of this table with the columns query_id and doc_id, as `judge-next` writes
                it, in its order; None: all, in the order of `judge_next`.
            progress: of `judge_next`.

        Raises:
            TrecexamError: arguments that do not go together, a plan that cannot be read or written, a list
                that cannot be read or has none of the pooled passages.
        """
        graded = self.track.graded(documents=True)
        return self.track.noted(
            plan_judging(
                graded,
                assessors,
                topics_each=topics_each,
                overlap=overlap,
                budget=budget,
                passages=passages,
                progress=progress,
            ),
            graded.name,
        )

    def agreement(self) -> AssessorAgreement:
        """Agreement on the cells that at least two people rated, whether planned or not.

        Each person's last rating counts, whatever counts for the track; "cannot judge" is no rating, and what
        somebody decided between people is none of these.
        """
        graded = self.track.graded()
        return self.track.noted(assessor_agreement(graded), graded.name)

    def export(self, folder: Path | str) -> ExportedJudgments:
        """Writes what people judged into a folder: qrels.txt, qrels-6.txt and judgments.tsv.

        A passage's label is the judgment that counts, on the scale of [judging] or of the official judgments.
        Where [judging] has no scale and nobody judged a whole passage so, it is made of people's ratings
        alone, of items or as a whole, by the rule of [scores]. Who cannot judge gives no label, and a passage
        without a rating that counts has no line. qrels-6.txt has the columns of TREC RAG 2025, `query_id Q0
        doc_id label confidence run_id`: the confidence is the share of those who judged the passage by whom
        it has this label, the run id their names with + between them. Who decided between people is one of
        them.

        Raises:
            TrecexamError: a file cannot be written; an id has white space in it; a file of people's ratings
                has no header line, so that none of them is known: nothing is written then.
        """
        return export_judgments(self.track.graded(documents=True), folder)

    def take_in(self, path: Path | str) -> ImportedJudgments:
        """Adds the judgments of a table, as `export_judgments` writes it; existing ones are skipped.

        Lines go to the end of overrides.tsv, or of judgments.tsv where they say so, or where they say
        nothing, are of a passage as a whole, and the track has a scale of judgments.

        Raises:
            TrecexamError, ConversionError: the table or a file of the track cannot be read, or not be
                written.
        """
        return import_judgments(self.track.folder, path)
