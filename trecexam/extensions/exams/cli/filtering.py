"""`trecexam exam filter`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.reading import writing

if TYPE_CHECKING:
    from trecexam.extensions.exams.settings import ExamSection
    from trecexam.tables.result import Result


@click.command(
    "filter",
    epilog="Example: trecexam exam filter exam.jsonl -o filtered --embedding offline "
    "--share extra-candidate-jaccard=0.05",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="EXAM.jsonl")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR",
    help="Gets kept.jsonl, dropped.jsonl, stats.json, groups.tsv and queries.tsv.",
)  # fmt: skip
@click.option(
    "--track",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="TRACK",
    help="Take thresholds, and what else no option says, from [exam] of this track's trecexam.toml.",
)
@click.option("--without", multiple=True, metavar="FILTER", help="Do not use this filter. May be repeated.")
@click.option(
    "--share",
    "shares",
    multiple=True,
    metavar="FILTER=SHARE",
    help="Choose a filter's threshold so that it takes out this share of all questions, at most. For the "
    "candidate filters and duplicates. May be repeated.",
)
@click.option(
    "--embedding",
    metavar="MODEL",
    help='For the embedding filters: "offline", a folder or a hub id of a sentence-transformers model '
    "[default: these are not used].",
)
@writing
def filtering(exam: Path, output: Path, track: Path | None, **given: Any) -> tuple[Result, int]:
    """Leave out the questions of EXAM.jsonl that are no good, and say why.

    \b
    self-contained             the stem names the text it was made from
    length                     stem or candidates are too short or too long
    extra-candidate-jaccard    a wrong candidate is closer to the passage than the right one
    extra-candidate-embedding  the same, by sentence embeddings
    intra-candidate-jaccard    two candidates say nearly the same
    intra-candidate-embedding  the same, by sentence embeddings
    duplicates                 the stem is nearly that of an earlier question

    A line is {"question_id", "question", "choices": [4], "correct": 0..3, "doc_id", "documentation",
    "topic"?}. Prints for each filter how many questions it takes out, and how many no other one does.
    groups.tsv is for `exam fit --groups`, queries.tsv
    for retrieval. Exit status 1: no question is left.
    """
    from trecexam.extensions.exams.filtering import filter_exam, write_filtered

    settings = _settings(track, given)
    filtered = filter_exam(exam, settings, track)
    write_filtered(filtered, output)
    filtered = replace(filtered, notes=(*filtered.notes, f"written: {output}"))
    return filtered, 0 if any(filtered.stays) else 1


def _settings(track: Path | None, given: dict[str, Any]) -> ExamSection:
    from pydantic import ValidationError

    from trecexam.extensions.exams.settings import ExamSection
    from trecexam.track import TrackFolder

    base = (
        {}
        if track is None
        else TrackFolder.open(track).config.section(ExamSection).model_dump(exclude_unset=True)
    )
    own = {
        key: value for key, value in given.items() if value is not None and key not in ("shares", "without")
    }
    if "embedding" in own and Path(own["embedding"]).is_dir():
        # What an option names is here, and not in the track.
        own["embedding"] = str(Path(own["embedding"]).absolute())
    without = list(given["without"]) or base.get("without", [])
    shares: dict[str, float] = {}
    for text in given["shares"]:
        name, _, value = text.partition("=")
        try:
            shares[name.strip()] = float(value)
        except ValueError:
            raise click.UsageError(
                f"--share {text}: a filter and a share needed, as extra-candidate-jaccard=0.05"
            ) from None
        if name.strip() in given["without"]:
            raise click.UsageError(f"--share {text} and --without {name.strip()}: leave one out")
    try:
        return ExamSection.model_validate(
            {**base, **own, "shares": {**base.get("shares", {}), **shares}, "without": without}
        )
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        option = "".join(
            f"--{name}: ".replace("_", "-").replace("shares", "share") for name in first["loc"][:1]
        )
        raise click.UsageError(option + message) from None
