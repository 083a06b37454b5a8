"""`trecexam ragval judge`: has a judge score a track's whole answers, whatever else grades the track."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from trecexam.config import GraderSection, ScoresSection
from trecexam.errors import GraderError
from trecexam.extensions.ragval.extra_outputs import made_of
from trecexam.extensions.ragval.formats.knowledge import KINDS
from trecexam.extensions.ragval.judged import FOLDER, JudgedAnswers, judged
from trecexam.extensions.ragval.reporting import RagvalReport, report_of
from trecexam.files import atomic as files
from trecexam.files.stamps import Rejected
from trecexam.graders import Grader
from trecexam.graders.base import Estimate
from trecexam.graders.traits import traits_of
from trecexam.line.assessment import Assessment
from trecexam.line.dropped_runs import NO_QUERY
from trecexam.line.grading import Progress
from trecexam.line.grading_time import measure_time
from trecexam.line.loader import TrackLoader
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.rejected import rejected_rows
from trecexam.track import TrackFolder

#: Graders whose settings name a language model that can judge.
_MODELS = ("ragval", "erag", "openai", "causal", "seq2seq")
#: What of another grader's settings is not for the judge.
_NOT_OURS = ("prompt", "decode", "compat", "passage_first", "structured", "recorded", "cut_points")


@dataclass(frozen=True)
class Judging:
    """What judging a track came to.

    Attributes:
        report: on all answers that are judged; None where none is.
        graded: answers that the judge was asked about now.
        rejected: lines and files of answers that were not taken, and what could not be judged.
        complete: False where it ended before all were asked about; `why` says what ended it.
        usage: tokens and money, now and in all; None where these are not counted.
    """

    judged: JudgedAnswers
    report: RagvalReport | None
    graded: int
    rejected: tuple[Rejected, ...]
    complete: bool
    why: str
    usage: dict[str, Any] | None


def judging_folder(folder: TrackFolder, model: dict[str, str] | None = None) -> TrackFolder:
    """The track with the judge as its grader; the same where it has that.

    Args:
        model: settings of [grader] (`model`, `base_url`, `key_env`) in place of the track's.

    Raises:
        GraderError: no language model is named.
    """
    config = folder.config
    if config.grader.name == "ragval" and not model:
        return folder
    if model:
        grader = GraderSection.model_validate({"name": "ragval", **model})
    elif config.grader.name in _MODELS:
        own = {key: getattr(config.grader, key) for key in config.grader.model_fields_set - {*_NOT_OURS}}
        grader = GraderSection.model_validate({**own, "name": "ragval"})
    else:
        raise GraderError(
            f"[grader] is `{config.grader.name}`, which cannot judge: name a language model there, or "
            "a server's with `base_url` and `model`",
            path=folder.config_path,
        )
    # Its measures may need what the questions have not, and none is computed here.
    scores = ScoresSection.model_validate({"unparsed": config.scores.unparsed})
    return replace(folder, config=config.model_copy(update={"grader": grader, "scores": scores}))


def judge(
    loader: TrackLoader,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Judging:
    """Judges the answers that are not judged yet, and writes out/ragval/; the rest of out/ stays as it is.

    Raises:
        StoreError: the store is gone or an older one, and what it had would be paid for again.
        TrecexamError, ConversionError: what stands in the way; what was judged until then is stored.
    """
    check_judge(loader.grader)
    refuse_lost_grades(loader)
    loader.open_to_write()
    track, graded = loader.grade(loader.load(), progress, stop)
    answers = judged(track)
    _write(track, answers)
    used = loader.grading.usage()
    done = result(track, answers, used, graded.cells // 2, complete=graded.complete, why=graded.why)
    # The track's other runs are to its own queries, and no news.
    ours = tuple(row for row in done.rejected if not row.reason.startswith(NO_QUERY))
    return replace(done, rejected=ours)


def updated(loader: TrackLoader, cells: int, *, complete: bool, why: str) -> Judging:
    """What judging came to where an update of the track was the judging.

    Args:
        cells: what the update graded; two are an answer.
        complete, why: whether it came to its end, and what ended it early.
    """
    track = loader.load()
    return result(track, judged(track), loader.grading.usage(), cells // 2, complete=complete, why=why)


def result(
    track: Assessment,
    answers: JudgedAnswers,
    used: dict[str, Any] | None,
    graded: int,
    *,
    complete: bool,
    why: str,
) -> Judging:
    """What judging came to, of a track that has judged; `used` as `Grading.usage` gives it."""
    report = report_of(answers.rows) if answers.rows else None
    return Judging(answers, report, graded, rejected_rows(track), complete, why, used)


def answers_to_judge(loader: TrackLoader, *, timed: bool = False) -> Estimate:
    """What judging would take, in answers ("cells"), tokens and money, and time where it is asked for."""
    check_judge(loader.grader)
    cells = loader.grading.estimate(loader.load())
    time = (cells.time or measure_time(loader)) if timed else cells.time
    return cells._replace(cells=-(-cells.cells // 2), time=time)


def check_judge(grader: Grader) -> None:
    """Refuses a grader that judges no answers."""
    if not traits_of(grader).item_kinds >= frozenset(KINDS):
        raise GraderError("this grader judges no answers for truthfulness and relevance")


def _write(track: Assessment, answers: JudgedAnswers) -> None:
    out = track.folder.out / FOLDER
    contents = {}
    if answers.rows or answers.waiting:
        contents = {out / name: content for name, content in made_of(answers, track).files.items()}
    for folder in (out, out / "plots"):
        files.sweep(folder)
        for path in folder.glob("*.*"):
            if path not in contents and path.name in OURS:
                files.remove(path)
    files.replace_together(contents)


#: What an update may write there.
OURS = frozenset(
    {
        "judged.jsonl",
        "judging.json",
        "report.json",
        *(f"{name}.tsv" for name in ("report", "intervals", "histogram", "significance", "bounds", "sweep")),
        *(f"{name}.{kind}" for name in ("means", "histogram", "sweep") for kind in ("svg", "png", "tsv")),
    }
)
