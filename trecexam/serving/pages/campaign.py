"""How far assessors are, how far they agree, and where somebody decides between them: for organizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.errors import RatingConflictError, TrecexamError
from trecexam.features.judging.agreement import AssessorAgreement, Disagreement, assessor_agreement
from trecexam.features.judging.assessments import own_assessments
from trecexam.features.judging.plan import read_plan
from trecexam.features.judging.progress import judging_progress
from trecexam.features.override.overriding import seen_token, take
from trecexam.serving import urls
from trecexam.serving.assessing import choices_of
from trecexam.serving.listing import Address, listed
from trecexam.serving.pages.people import rating_of
from trecexam.serving.people import standing, with_people
from trecexam.serving.rendering import (
    NotFoundError,
    author_of,
    form_of,
    go,
    live_of,
    remember,
    render,
    view_of,
    who_of,
)
from trecexam.track import TrackFolder
