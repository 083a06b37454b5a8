"""`trecexam export`."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.lazy import OpenGroup
from trecexam.cli.options import in_a_folder, track_argument
from trecexam.errors import TrecexamError
from trecexam.files import atomic as files
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from converters.records import MeasureValue


@click.group(cls=OpenGroup, epilog="Example: trecexam export qrels mytrack --binary -o rubric.qrels")
def export() -> None:
    """Write what trec_eval, ndeval and other tools read."""


output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=in_a_folder,
    metavar="FILE",
    help="Instead of standard output; replaced as a whole.",
)
min_rating_option = click.option(
    "--min-rating",
    type=click.IntRange(1, 5),
    metavar="N",
    help="From this rating on, a passage reaches an item [default: the track's, 4].",
)


@export.command(epilog="Example: trecexam export qrels mytrack --label count --min-rating 4 -o rubric.qrels")
@track_argument
@output_option
@click.option(
    "--label",
    type=click.Choice(["max", "count"]),
    help="A label is the passage's best rating, or the number of items it reaches.",
)
@min_rating_option
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Items a passage must reach [default: the track's, 1].",
)
@click.option("--binary", is_flag=True, help="Label 1 for passages that reach enough items, 0 for the rest.")
@click.option(
    "--by",
    type=click.Choice(["query", "facet"]),
    default="query",
    show_default=True,
    help="Labels of each query, or of each of its facets, by the facet's items, as query/facet.",
)
def qrels(
    track: Path,
    output: Path | None,
    label: Literal["max", "count"] | None,
    min_rating: int | None,
    min_answers: int | None,
    binary: bool,
    by: Literal["query", "facet"],
) -> None:
    """Rubric-Qrels of TRACK, as trec_eval takes them."""
    with trecexam.open_track(track) as opened:
        rows = opened.qrels(label=label, min_rating=min_rating, min_answers=min_answers, binary=binary, by=by)
        _write_qrels(rows, output)
        left_out = opened.export.items_without_facet() if by == "facet" else 0
        if left_out:
            click.echo(f"{left_out:,} items have no facet, and are left out", err=True)
        show.human(opened)


@export.command(epilog="Example: trecexam export subtopics mytrack -o rubric.subtopics.qrels")
@track_argument
@output_option
@min_rating_option
def subtopics(track: Path, output: Path | None, min_rating: int | None) -> None:
    """Which passage reaches which item, as ndeval takes it: query, item index, document, 0 or 1."""
    with trecexam.open_track(track) as opened:
        _write_qrels(opened.export.subtopics(min_rating=min_rating), output)
        show.human(opened)


@export.command(epilog="Example: trecexam export grades mytrack -o grades.jsonl")
@track_argument
@output_option
def grades(track: Path, output: Path | None) -> None:
    """Every grade of TRACK's pool as JSONL; the `recorded` grader reads it back.

    Ratings are the grader's; where a person rated the cell, `human_rating`, `who` and `why` stand beside.
    """
    with trecexam.open_track(track) as opened:
        emit(_lines(opened.grades()), output)


@export.command(epilog="Example: trecexam export assignments mytrack -o assignments.jsonl")
@track_argument
@output_option
def assignments(track: Path, output: Path | None) -> None:
    """What each response or passage of TRACK says of its nuggets, as nuggetizer writes assignments.

    A rating from 4 on is `support`, 3 is `partial_support`, a lower one `not_support`, none `failed`.
    """
    with trecexam.open_track(track) as opened:
        emit(_lines(opened.export.assignments()), output)


@export.command(epilog="Example: trecexam export runs mytrack -o for-trec-eval")
@track_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="A file NAME.run for each run; it is made, and files of these names are replaced.",
)
@click.option(
    "--metadata",
    is_flag=True,
    help="Write ir_metadata headers, where runs have them. trec_eval 9 refuses these.",
)
def runs(track: Path, output: Path, metadata: bool) -> None:
    """Runs of TRACK as trec_eval takes them, whatever they were: packed, in sub-folders, responses.

    Each run's tag is its name on the leaderboard, the order trec_eval's.
    """
    from converters.trec_run import write_run

    contents: dict[Path, bytes] = {}
    with trecexam.open_track(track) as opened:
        for name, run in opened.export.runs().items():
            # Runs that share a tag are named by their paths.
            tag = "_".join(name.replace("/", "_").split())
            path = output / f"{tag}.run"
            if path in contents:
                raise TrecexamError("two runs would be written here; rename a run file", path=path)
            buffer = io.BytesIO()
            write_run(run.renamed(tag), buffer, run.metadata if metadata else "")
            contents[path] = buffer.getvalue()
    files.make_folder(output)
    files.replace_together(contents)
    click.echo(f"{plural(len(contents), 'run')} written to {output}", err=True)


@export.command(epilog="Example: trecexam export responses mytrack --run mysys -o scored.jsonl")
@track_argument
@click.option("--run", required=True, metavar="NAME", help="The run, by its name on the leaderboard.")
@output_option
def responses(track: Path, run: str, output: Path | None) -> None:
    """Responses of a run of TRACK, line by line as they were dropped, each with its scores.

    Lines are ragas samples, reports or others; a measure is one more field of them.
    """
    import orjson

    with trecexam.open_track(track) as opened:
        rows = opened.export.responses(run)
        emit(b"".join(orjson.dumps(row) + b"\n" for row in rows), output)


@export.command(epilog="Example: trecexam export official mytrack -o official.qrels")
@track_argument
@output_option
def official(track: Path, output: Path | None) -> None:
    """Official judgments of TRACK as trec_eval takes them, whatever their columns or ir_datasets had."""
    with trecexam.open_track(track) as opened:
        _write_qrels(opened.export.official_qrels(), output)


@export.command(
    epilog="Example: trecexam export leaderboard mytrack --format ir_measures -o mytrack.eval.txt"
)
@track_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["ir_measures", "tot", "trec_eval", "ranking", "jsonl"]),
    default="ir_measures",
    show_default=True,
    help="Lay out the columns as this format; see `formats.md`.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=in_a_folder,
    metavar="FILE|FOLDER",
    help="Write here in place of standard output. Replaces FILE; with --format trec_eval FOLDER has a file "
    "for each run.",
)
def leaderboard(track: Path, form: str, output: Path | None) -> None:
    """Each run's value on each query of TRACK, and its means as query `all`, as other programs read them.

    `auto-judge-evaluate` of TREC AutoJudge reads all of these formats.
    """
    with trecexam.open_track(track) as opened:
        rows = list(opened.export.leaderboard_values())
    # The names that files have columns for: those of runs in sub-folders may have blanks.
    rows = [row._replace(run="_".join(row.run.split())) for row in rows]
    if form != "trec_eval":
        emit(_value_lines(rows, form, track), output)
        return
    if output is None:
        raise click.UsageError("--format trec_eval has a file for each run: name a folder with -o")
    contents: dict[Path, bytes] = {}
    for name in dict.fromkeys(row.run for row in rows):
        path = output / name.replace("/", "_")
        contents[path] = _value_lines([row for row in rows if row.run == name], form, track)
    files.make_folder(output)
    files.replace_together(contents)
    click.echo(f"{plural(len(contents), 'run')} written to {output}", err=True)


def _value_lines(rows: Sequence[MeasureValue], form: str, track: Path) -> bytes:
    from converters.measure_values import write_values

    buffer = io.BytesIO()
    try:
        write_values(rows, buffer, form)
    except ValueError as error:
        raise TrecexamError(f"{error}; --format jsonl can", path=track) from None
    return buffer.getvalue()


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    import orjson

    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _write_qrels(rows: Any, output: Path | None) -> None:
    from converters.trec_qrels import write_qrels

    buffer = io.BytesIO()
    write_qrels(rows, buffer)
    emit(buffer.getvalue(), output)


def emit(content: bytes, output: Path | None) -> None:
    """Writes a file, or to standard output.

    Raises:
        TrecexamError: the file would be read as a run of a track, or cannot be written.
    """
    from trecexam.track import folder_of_track

    inner = None if output is None else folder_of_track(output, runs_alone=True)
    if inner is not None:
        raise TrecexamError(f"is in {inner}, and would be read as a run: name a file elsewhere", path=output)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        files.replace(output, content)
