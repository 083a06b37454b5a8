"""The class that the framework calls: `create_nuggets`, `create_qrels`, `judge`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from autojudge_base import (
    Leaderboard,
    LeaderboardBuilder,
    LeaderboardEntry,
    LeaderboardSpec,
    LlmConfigProtocol,
    MeasureSpec,
    NuggetBanks,
    Qrels,
    QrelsSpec,
    Report,
    Request,
    build_qrels,
)

from trecexam.extensions.autojudge.graded_track import graded, judged, lay_out, place_of
from trecexam.extensions.autojudge.nuggets import as_nugget_banks, take_nugget_banks
from trecexam.extensions.autojudge.settings import Endpoint
from trecexam.files.atomic import make_folder
from trecexam.files.track_lock import track_lock
from trecexam.grades.graded_track import LoadedTrack
from trecexam.results.text import shorten_list
from trecexam.scores.labels import label_qrels
from trecexam.scores.values import TIE_DECIMALS

#: Descriptions of measures for the framework.
_SAYS = {
    "nuggets": "share of the query's nuggets that the response states",
    "support": "how far cited passages support the sentences that cite them",
    "umbrela": "how relevant the cited passages are",
    "rubric": "share of the test bank that the cited passages answer",
}


class Judge:
    """Judge of reports with the graders of a RAG track; answers are stored and requested once.

    The track is in `trecexam/` of the folder that `llm_config.cache_dir` names, else of `outdir`.
    Settings are those of trecexam.toml, see `trecexam.extensions.autojudge.settings`. Each call raises a
    TrecexamError if it cannot continue; answers so far are stored.
    """

    nugget_banks_type = NuggetBanks

    def create_nuggets(
        self,
        rag_responses: Iterable[Report] | None,
        rag_topics: Sequence[Request],
        llm_config: LlmConfigProtocol,
        nugget_banks: NuggetBanks | None = None,
        **settings: Any,
    ) -> NuggetBanks | None:
        """Return the graders' test banks: questions, and nuggets as claims.

        None, with a printed note, if no grader has a bank or a topic has no items.
        """
        with _graded(rag_responses, rag_topics, llm_config, nugget_banks, settings) as track:
            banks = as_nugget_banks(track, {topic.request_id: topic.title for topic in rag_topics})
        missing = [topic.request_id for topic in rag_topics if topic.request_id not in banks.banks]
        if missing and banks.banks:
            _say(f"no nugget bank is given: there are no nuggets for {shorten_list(missing)}")
        return None if missing else banks

    def create_qrels(
        self,
        rag_responses: Iterable[Report] | None,
        rag_topics: Sequence[Request],
        llm_config: LlmConfigProtocol,
        nugget_banks: NuggetBanks | None = None,
        **settings: Any,
    ) -> Qrels | None:
        """Return labels of the cited passages: by UMBRELA, else by the bank.

        None, with a printed note, if no grader labels passages or a topic has no cited passage.
        """
        with _graded(rag_responses, rag_topics, llm_config, nugget_banks, settings) as track:
            if not any(each.of_documents for each in track.graded_tracks.values()):
                return None
            labels = track.of_documents
            scores = labels.config.scores
            rows = list(label_qrels(labels.ratings(), scores.label, scores.min_rating, scores.min_answers))
        missing = {topic.request_id for topic in rag_topics}.difference(row.query_id for row in rows)
        if missing:
            _say(f"no qrels are given: no passage is labelled for {shorten_list(sorted(missing))}")
            return None
        spec = QrelsSpec(
            topic_id=lambda row: row.query_id,
            doc_id=lambda row: row.doc_id,
            grade=lambda row: row.relevance,
            on_duplicate="keep_max",
        )
        return build_qrels(records=rows, spec=spec)

    def judge(
        self,
        rag_responses: Iterable[Report],
        rag_topics: Sequence[Request],
        llm_config: LlmConfigProtocol,
        nugget_banks: NuggetBanks | None = None,
        qrels: Qrels | None = None,
        **settings: Any,
    ) -> Leaderboard:
        """Return the values of all graders' columns on each topic of a run; the framework computes the means.

        `qrels` are ignored: they come from the same graders.
        """
        reports = list(rag_responses)
        topics = {topic.request_id for topic in rag_topics}
        responses: dict[str, list[str]] = {}
        for report in reports:
            if report.metadata.topic_id in topics:
                responses.setdefault(report.metadata.run_id, []).append(report.metadata.topic_id)
        with _graded(reports, rag_topics, llm_config, nugget_banks, settings, loud=True) as track:
            judgments = judged(track, responses)
        for note in judgments.notes:
            _say(note)
        descriptions = {name: _SAYS.get(name.partition(":")[0], "") for name in judgments.measures}
        specs = (MeasureSpec(name, description=description) for name, description in descriptions.items())
        builder = LeaderboardBuilder(LeaderboardSpec(measures=tuple(specs)))
        for (run, topic), values in sorted(judgments.values.items()):
            builder.add(run_id=run, topic_id=topic, values=dict(zip(judgments.measures, values, strict=True)))
        built = builder.build(expected_topic_ids=sorted(topics), on_missing="fix_aggregate")
        return replace(built, entries=tuple(_rounded(entry) for entry in built.entries))


@contextmanager
def _graded(
    reports: Iterable[Report] | None,
    topics: Sequence[Request],
    llm_config: LlmConfigProtocol,
    nugget_banks: NuggetBanks | None,
    settings: dict[str, Any],
    *,
    loud: bool = False,
) -> Iterator[LoadedTrack]:
    """Load the graded track; with `loud`, print notes, which one of the three calls does."""
    endpoint = Endpoint(llm_config.model, getattr(llm_config, "base_url", None))
    cache_dir = Path(llm_config.cache_dir or settings["outdir"])
    rows = [topic.model_dump(exclude_none=True, exclude={"topic_id", "narrative_id"}) for topic in topics]
    of_runs: dict[str, list[dict[str, Any]]] = {}
    for report in reports or ():
        of_runs.setdefault(report.metadata.run_id, []).append(_row(report))
    root = place_of(cache_dir, rows)
    make_folder(root / ".trecexam")
    with track_lock(root / ".trecexam" / "lock"):
        lay_out(root, rows, None if reports is None else of_runs, settings, endpoint)
        if nugget_banks is not None:
            take_nugget_banks(root, nugget_banks)
        with graded(root, endpoint, _say if loud else lambda note: None) as track:
            yield track


def _rounded(entry: LeaderboardEntry) -> LeaderboardEntry:
    """Round values to `TIE_DECIMALS`, so that runs with equal scores are tied."""
    values = {name: round(float(value), TIE_DECIMALS) for name, value in entry.values.items()}
    return replace(entry, values=values)


def _row(report: Report) -> dict[str, Any]:
    """Return a report as in its file: `answer` and `responses` are the same object in memory."""
    row: dict[str, Any] = report.model_dump(
        mode="json", exclude_none=True, exclude={"answer", "is_ragtime", "evaldata", "ranking"}
    )
    return row


def _say(line: str) -> None:
    print(f"trecexam: {line}", file=sys.stderr)
