"""`trecexam export`."""

from __future__ import annotations

import glob
import gzip
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from converters.measure_values import write_values
from converters.trec_qrels import write_qrels
from converters.trec_run import write_run
from converters.workbench import write_pool
from trecexam.cli.main import LazyGroup
from trecexam.cli.options import answering, output_folder_option, output_option, output_path, track_argument
from trecexam.cli.reading import say
from trecexam.errors import TrecexamError
from trecexam.files import atomic as files
from trecexam.results.text import first_notes, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from converters.records import MeasureValue
    from trecexam.track import Track


@click.group(cls=LazyGroup, epilog="Example: trecexam export qrels mytrack --binary -o rubric.qrels")
def export() -> None:
    """Write qrels, runs and grades of a track for trec_eval, ndeval and other tools."""


file_option = output_option("Write to FILE instead of standard output.")
min_rating_option = click.option(
    "--min-rating",
    type=click.IntRange(1, 5),
    metavar="N",
    help="Count a passage as reaching an item from this rating on [default: the track's, 4].",
)


@export.command(epilog="Example: trecexam export qrels mytrack --label count --min-rating 4 -o rubric.qrels")
@track_argument
@file_option
@click.option(
    "--label",
    type=click.Choice(["max", "count"]),
    help="Label a passage with its best rating, or with the number of items it reaches [default: the "
    "track's].",
)
@min_rating_option
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Require a passage to reach this many items [default: the track's, 1].",
)
@click.option("--binary", is_flag=True, help="Label passages that reach enough items 1, all others 0.")
@click.option(
    "--by",
    type=click.Choice(["query", "facet"]),
    default="query",
    show_default=True,
    help="Write labels per query, or per facet as query/facet, from the facet's items.",
)
def qrels(track: Track, output: Path | None, **options: Any) -> None:
    """Write the automatic labels of TRACK as qrels for trec_eval.

    With -o, FILE.json beside FILE says whose labels they are: grader, model, prompt, date, version, how many
    lines people gave, and FILE's sha256. Other commands read it where they get FILE.
    """
    track = answering(track, documents=True)
    if output is None:
        _write_qrels(track.qrels(**options), None)
    else:
        track.export.qrels(output, **options)
    left_out = track.export.items_without_facet() if options["by"] == "facet" else 0
    if left_out:
        click.echo(f"left out {plural(left_out, 'item')} without a facet", err=True)
    _say_human(track)


@export.command(epilog="Example: trecexam export subtopics mytrack -o rubric.subtopics.qrels")
@track_argument
@file_option
@min_rating_option
def subtopics(track: Track, output: Path | None, min_rating: int | None) -> None:
    """Write which passage reaches which item, for ndeval: query, item index, document, 0 or 1."""
    track = answering(track)
    _write_qrels(track.export.subtopics(min_rating=min_rating), output)
    _say_human(track)


@export.command(epilog="Example: trecexam export grades mytrack -o grades.jsonl")
@track_argument
@file_option
def grades(track: Track, output: Path | None) -> None:
    """Write every grade of TRACK's pool as JSONL; the `recorded` grader reads this file.

    Ratings are the grader's. If a person rated the cell, the fields `human_rating`, `who` and `why` are
    added.
    """
    _emit_lines(answering(track).grades(), output)


@export.command(epilog="Example: trecexam export runs mytrack -o for-trec-eval")
@track_argument
@output_folder_option(
    "Write one file NAME.run per run into FOLDER; it is made if needed, and existing files are replaced.",
    metavar="FOLDER",
)
@click.option(
    "--metadata",
    is_flag=True,
    help="Write ir_metadata headers, if runs have them. trec_eval 9 rejects these.",
)
def runs(track: Track, output: Path, metadata: bool) -> None:
    """Write the runs of TRACK as plain run files for trec_eval, whatever format they came in.

    Each run's tag is its name on the leaderboard. The order is that of trec_eval.
    """
    from trecexam.grades.graded_track import has_bank
    from trecexam.inputs.measures import order_cautions

    contents: dict[Path, bytes] = {}
    exported = answering(track, has_bank, bank_needed=False).export.runs()
    for name, run in exported.items():
        # Runs with the same tag are named by their paths.
        tag = "_".join(name.replace("/", "_").split())
        path = output / f"{tag}.run"
        if path in contents:
            raise TrecexamError("two runs would be written here; rename a run file", path=path)
        contents[path] = _written(write_run, run.renamed(tag), run.metadata if metadata else "")
    _write_files(contents, output, track)
    for note in order_cautions(exported):
        click.echo(note, err=True)


@export.command(epilog="Example: trecexam export responses mytrack --run mysys -o scored.jsonl")
@track_argument
@click.option("--run", required=True, metavar="NAME", help="Export the run of this name on the leaderboard.")
@file_option
def responses(track: Track, run: str, output: Path | None) -> None:
    """Write the responses of one run of TRACK, line by line, with their scores.

    Each line keeps its format (ragas sample, report ...); each measure is added as a field.
    """
    _emit_lines(answering(track).export.responses(run), output)


@export.command(epilog="Example: trecexam export official mytrack -o official.qrels")
@track_argument
@file_option
def official(track: Track, output: Path | None) -> None:
    """Write the official judgments of TRACK as qrels for trec_eval."""
    # Imports numpy.
    from trecexam.grades.graded_track import has_bank

    grader_track = answering(track, has_bank, documents=True, bank_needed=False)
    _write_qrels(grader_track.export.official_qrels(), output)


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
    help="Write this format; see `formats.md`.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=output_path,
    metavar="FILE|FOLDER",
    help="Write to FILE instead of standard output; an existing file is replaced, but none in a track. "
    "With --format trec_eval, write one file per run into FOLDER.",
)
def leaderboard(track: Track, form: str, output: Path | None) -> None:
    """Write each run's value on each query of TRACK, and its means as query `all`.

    `auto-judge-evaluate` of TREC AutoJudge reads all of these formats.
    """
    say(first_notes(track.leaderboard().notes, "`trecexam leaderboard --json`"))
    # Run names must fit into columns; names of runs in sub-folders may have blanks.
    rows = [row._replace(run="_".join(row.run.split())) for row in track.export.leaderboard_values()]
    if form != "trec_eval":
        _emit(_value_lines(rows, form, track), output)
        return
    if output is None:
        raise click.UsageError("--format trec_eval has a file for each run: name a folder with -o")
    contents: dict[Path, bytes] = {}
    for name in dict.fromkeys(row.run for row in rows):
        path = output / name.replace("/", "_")
        contents[path] = _value_lines([row for row in rows if row.run == name], form, track)
    _write_files(contents, output, track)


@export.command(epilog="Example: trecexam export pool mytrack -o graded.jsonl.gz")
@track_argument
@file_option
def pool(track: Track, output: Path | None) -> None:
    """Write TRACK's pool with its grades in the format of the Rubric workbench.

    One line per query, with texts, ranks in the runs, official judgments and the grader's own grades of
    every pooled passage. End FILE in .gz for the workbench; it reads no other. The `recorded` grader reads
    this file.
    """
    content = _written(write_pool, answering(track).export.pool())
    if output is not None and output.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    _emit(content, output)


def _write_files(contents: Mapping[Path, bytes], folder: Path, track: Track) -> None:
    """Write a file per run into a folder, and print a summary."""
    # Imports pydantic.
    from trecexam.inputs.protected import refuse_folder

    refuse_folder(folder, (track.folder.root,), (glob.escape(path.name) for path in contents))
    files.make_folder(folder)
    files.replace_together(contents)
    click.echo(f"{plural(len(contents), 'run')} written to {folder}", err=True)


def _value_lines(rows: Sequence[MeasureValue], form: str, track: Track) -> bytes:
    try:
        return _written(write_values, rows, form)
    except ValueError as error:
        raise TrecexamError(f"{error}; --format jsonl can", path=track.folder.root) from None


def _write_qrels(rows: Any, output: Path | None) -> None:
    _emit(_written(write_qrels, rows), output)


def _emit_lines(rows: Iterable[dict[str, Any]], output: Path | None) -> None:
    import orjson

    _emit(b"".join(orjson.dumps(row) + b"\n" for row in rows), output)


def _written(write: Callable[..., object], rows: Any, *options: Any) -> bytes:
    """Return the bytes that a format's writer gives."""
    buffer = io.BytesIO()
    write(rows, buffer, *options)
    return buffer.getvalue()


def _emit(content: bytes, output: Path | None) -> None:
    """Write a file, or to standard output."""
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        files.replace(output, content)


def _say_human(track: Track) -> None:
    """Print how many of the exported ratings are people's, if any."""
    from trecexam.grades.diagnostics import human_notes

    say(human_notes(track.override.summary()))
