"""`trecexam erag`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

import trecexam
from trecexam.cli.options import estimate_option, json_option, track_argument
from trecexam.cli.reading import answer, say
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, working
from trecexam.tables.terminal import printable

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
#: Inputs not taken that are named before the rest is counted.
_SPELT = 20


@click.command(
    epilog="Example: trecexam erag mytrack --gold gold.jsonl --metric f1 -o erag -m P@5 -m NDCG@10 -m Hit"
)
@track_argument
@click.option(
    "--gold",
    type=_FILE,
    metavar="FILE",
    help="Gold outputs, JSONL: `query_id, outputs`, or KILT's [default: the track's bank].",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="em, f1, rouge-l, accuracy, or module:function, (output, gold outputs) -> 0..1 [default: that of "
    "[grader], else em].",
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    help="A run of the track, or a file. May be repeated [default: all runs of the track].",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Gets labels.tsv, scores.tsv, labels.qrels and kin. Needed unless --estimate.",
)
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="As ir_measures prints it, or MAP, MRR, NDCG, Hit, Precision, Recall; without @k of the whole list. "
    "May be repeated [default: P, nDCG, Success, R, AP, RR at 10, as far as the labels allow].",
)
@click.option(
    "--outputs",
    type=_FILE,
    metavar="FILE",
    help="What a model wrote, JSONL: `query_id, doc_id, output`; no model runs here.",
)
@click.option(
    "--end-to-end",
    type=_FILE,
    metavar="FILE",
    help="TSV `run query_id score`, of the systems' whole answers: correlate with these.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="K",
    help="Documents of each list that count [default: the track's depth; with --outputs all].",
)
@click.option(
    "--prompt", type=_FILE, metavar="FILE", help="A .toml or .jinja file with {query} and {document}."
)
@click.option(
    "--labels",
    type=click.Choice(["outputs", "contains-answer", "provenance"]),
    default="outputs",
    help="What labels are made of: outputs; or, without a model, the document contains a gold answer, or "
    "--provenance names it [default: outputs].",
)
@click.option(
    "--provenance",
    type=_FILE,
    metavar="FILE",
    help="Qrels, or a KILT file, for --labels provenance [default: the track's qrels, else --gold's own].",
)
@estimate_option
@json_option
def erag(
    track: Path,
    gold: Path | None,
    metric: str | None,
    runs: tuple[str, ...],
    output: Path | None,
    measures: tuple[str, ...],
    outputs: Path | None,
    end_to_end: Path | None,
    depth: int | None,
    prompt: Path | None,
    labels: str,
    provenance: Path | None,
    estimate: bool,
    as_json: bool,
) -> int:
    """eRAG: score runs by what the RAG system's model makes of each document alone.

    The model answers each query from one document at a time; the metric compares its output with the gold
    outputs, and that is the document's label. Prints the runs' means over all gold queries of the track.
    Outputs are kept in TRACK/.trecexam, so that none is asked for twice, and another metric runs no model.

    The model is that of [grader] where its name is erag, else that of [generator], else the language model of
    [grader].

    Exit status: 0, or 1 when an input was not taken, the model did not answer or the metric failed for a
    document, or a measure is not defined for fractional labels.
    """
    with trecexam.open_track(track) as opened:
        if estimate and labels != "outputs":
            raise click.UsageError(f"--estimate is what a model takes, and --labels {labels} asks none")
        if estimate:
            estimate_of = partial(opened.erag.estimate, gold, runs=runs, depth=depth, prompt=prompt)
            return show_estimate(estimate_of, as_json=as_json, doing="answering", grades=True)
        if output is None:
            raise click.UsageError("a folder for the files is needed: -o DIR")
        if outputs is not None and prompt is not None:
            raise click.UsageError("--prompt is what a model is asked, and with --outputs none is")
        with working("answering", "answered", "documents") as work:
            done = opened.erag.score(
                gold,
                metric,
                runs=runs,
                measures=measures or None,
                outputs=outputs,
                end_to_end=end_to_end,
                depth=depth,
                prompt=prompt,
                labels=labels,
                provenance=provenance,
                output=output,
                progress=work.progress,
                stop=work.stop,
            )
    for row in done.rejected[:_SPELT]:
        click.echo(printable(f"not taken: {row}"), err=True)
    if len(done.rejected) > _SPELT:
        left = len(done.rejected) - _SPELT
        click.echo(f"not taken: {left:,} more (all in {output}/rejected.tsv)", err=True)
    if not done.complete:
        say(done)
        return exit_status(work.caught, 1)
    answer(replace(done, notes=(*done.notes, f"written: {output}")), "json" if as_json else None)
    return 1 if done.rejected or done.refused or done.failed else 0
