"""`track.judging`: a campaign of assessors; `track.judge_next`: what to judge next."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder, on_loaded
from trecexam.extensions.campaign.agreement import assessor_agreement
from trecexam.extensions.campaign.exporting import export_judgments, import_judgments
from trecexam.extensions.campaign.judge_next.next_judgments import next_judgments
from trecexam.extensions.campaign.planning import plan_judging


@named_as_called
class JudgingAccessor(Accessor):
    """Plan and agreement of a campaign, and its judgments as files."""

    plan = on_loaded(plan_judging)
    agreement = on_loaded(assessor_agreement)
    export = on_loaded(export_judgments)
    take_in = on_folder(import_judgments)


@named_as_called
class JudgeNextAccessor(Accessor):
    """What a person should judge next: `track.judge_next()`."""

    __call__ = on_loaded(next_judgments)
