"""`trecexam erag`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.options import output_folder_option, track_argument
from trecexam.cli.reading import say, writing_or_estimating
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, working
from trecexam.results.text import LOST, Note, first_notes

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(
    epilog="Example: trecexam erag mytrack --gold gold.jsonl --metric f1 -o erag -m P@5 -m nDCG@10"
)
@track_argument
@click.option(
    "--gold",
    type=_FILE,
    metavar="FILE",
    help="Use these gold outputs, JSONL: `query_id, outputs`, or KILT's [default: the track's bank].",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="Score with em, f1, rouge-l, accuracy, or module:function, (output, gold outputs) -> 0..1 "
    "[default: that of [grader], else em].",
)
@output_folder_option("Write labels.tsv, scores.tsv, labels.qrels and more into this folder.", required=False)
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Use this measure, in ir_measures' notation. May be repeated [default: P, nDCG, Success, R, AP, RR "
    "at 10, as far as the labels allow].",
)
@click.option(
    "--outputs",
    type=_FILE,
    metavar="FILE",
    help="Read a model's outputs from this JSONL file, `query_id, doc_id, output`; runs no model.",
)
@click.option(
    "--end-to-end",
    type=_FILE,
    metavar="FILE",
    help="Correlate with the systems' whole answers: TSV `run query_id score`.",
)
@click.option(
    "--labels",
    type=click.Choice(["outputs", "contains-answer", "provenance"]),
    default="outputs",
    show_default=True,
    help="Make labels from outputs; or, without a model, from whether the document contains a gold answer, "
    "or the track's qrels (else KILT's gold outputs) name it.",
)
@writing_or_estimating
def erag(
    track: Track, output: Path | None, *, estimate: bool, as_json: bool, **options: Any
) -> tuple[Result | None, int]:
    """Score runs by what a RAG system's model answers from each document alone (eRAG).

    The model answers each query from one document at a time. The metric compares the output with the gold
    outputs; that is the document's label. Prints the runs' means over all gold queries. Outputs are stored
    in TRACK/.trecexam, so each prompt is sent once and another metric runs no model. The model is that of
    [grader] if the grader is erag, else that of [generator], else the language model of [grader].

    Exit status: 0, or 1 if an input was rejected, the model did not answer, the metric failed for a
    document, or a measure is not defined for fractional labels.
    """
    # Imports pydantic.
    from trecexam.graders.base import Estimate

    options["measures"] = options["measures"] or None
    if estimate:
        runs_model = options["labels"] == "outputs" and options["outputs"] is None
        ask = partial(track.erag.estimate, options["gold"]) if runs_model else partial(Estimate, 0)
        return None, show_estimate(ask, as_json=as_json)
    with working("answering", "documents") as work:
        done = track.erag.score(**options, output=output, progress=work.progress, stop=work.stop)
    if work.caught:
        say(first_notes(done.notes, "-o DIR --json"))
        return None, exit_status(work.caught, 1)
    status = 1 if done.rejected or done.failed else 0
    return done if output is None else done.with_notes(Note(f"written: {output}", LOST)), status
