"""`trecexam exam score`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from trecexam.cli.options import estimate_option, json_option, key_env_option
from trecexam.cli.reading import answer
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, working

if TYPE_CHECKING:
    from trecexam.config import GeneratorSection

#: Of a server's answer.
_TOKENS = 256


@click.command(
    "score",
    epilog="Example: trecexam exam score exam.jsonl -o taken --model Qwen/Qwen3-0.6B --retriever oracle "
    "--retriever bm25.run --passages corpus.jsonl --examples 0 --examples 1",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="EXAM.jsonl")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Gets matrix.tsv, responses.jsonl, components.tsv, answers.jsonl; other examinees stay in them.",
)
@click.option(
    "--model", required=True, metavar="MODEL", help="A folder, a hub id, or what the server calls it."
)
@click.option("--name", metavar="NAME", help="The model's name in the files [default: the end of MODEL].")
@click.option(
    "--retriever",
    "named",
    multiple=True,
    metavar="closed-book|oracle|RUN",
    help="No documents, the question's own passage, or a TREC run whose query ids are question ids. May be "
    "repeated [default: closed-book].",
)
@click.option(
    "--examples",
    multiple=True,
    type=click.IntRange(0, 8),
    metavar="N",
    help="In-context examples. May be repeated: each retriever is combined with each N [default: 0].",
)
@click.option(
    "--documents", type=click.IntRange(min=1), default=3, show_default=True, metavar="N",
    help="Documents of a run that are shown.",
)  # fmt: skip
@click.option(
    "--passages",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The corpus, for runs [default: the exam's own passages].",
)
@click.option(
    "--by",
    type=click.Choice(["likelihood", "letter"]),
    default="likelihood",
    show_default=True,
    help="The candidate's log-likelihood by its length, or the letter's. A server is asked for a letter.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Draws the examples.")
@click.option("--device", metavar="DEVICE", help="cpu, cuda, cuda:1, mps [default: the best there is].")
@click.option(
    "--dtype",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
    help="What a model here computes in; auto: bfloat16 where the device does.",
)
@click.option("--base-url", metavar="URL", help="Of an OpenAI-compatible server, in place of a model here.")
@key_env_option
@estimate_option
@json_option
def scoring(
    exam: Path,
    output: Path,
    model: str,
    name: str | None,
    named: tuple[str, ...],
    examples: tuple[int, ...],
    documents: int,
    passages: Path | None,
    by: str,
    seed: int,
    device: str | None,
    dtype: str,
    base_url: str | None,
    key_env: str | None,
    estimate: bool,
    as_json: bool,
) -> int:
    """Have examinees take EXAM.jsonl: a model, with each retriever and number of examples.

    Prints all examinees in DIR with their accuracy. matrix.tsv and components.tsv are for `exam fit`. Called
    again with other models, it adds them. Answers are kept in DIR/.answers.jsonl, so that no question
    is asked twice.

    Exit status: 0, or 1 when a question was not answered.
    """
    _check(by, base_url)
    from trecexam.extensions.exams import scoring as stage
    from trecexam.extensions.exams.exam_file import read_exam
    from trecexam.extensions.exams.matrices import write_examinees
    from trecexam.extensions.exams.models import estimate_taking, examinee
    from trecexam.graders.writing.asking import Job

    questions = tuple(read_exam(exam))
    chosen_retrievers = stage.retrievers(named or (stage.CLOSED_BOOK,), documents)
    texts = stage.texts_of(passages, chosen_retrievers, questions)
    settings = _settings(
        model=model,
        device=device,
        dtype=dtype,
        base_url=base_url,
        key_env=key_env,
        max_new_tokens=_TOKENS,
    )
    how: Literal["letter", "likelihood"] = "letter" if by == "letter" else "likelihood"
    todo = [
        stage.ExamSetup(name or Path(model).name, questions, retriever, number, texts, seed)
        for retriever in chosen_retrievers
        for number in dict.fromkeys(examples or (0,))
    ]
    if estimate:
        estimate_of = partial(estimate_taking, settings, output, todo, how)
        return show_estimate(estimate_of, as_json=as_json, doing="answering")
    source = examinee(settings, output)
    status, notes = 0, dict[str, None]()
    found = None
    with working("answering", "answered", "questions") as work:
        for setup in todo:
            took = Job(stage.taking(source, setup, how)).ask(work.steps, work.stop)
            found = write_examinees([took], questions, output)
            notes |= dict.fromkeys(found.notes)
            for note in (*took.notes, *([f"ended early: {took.why}"] if took.why else [])):
                notes[f"{took.name}: {note}"] = None
            status = max(status, int(len(took.answers) < len(questions)))
            if took.why:
                break
    following = f"next: trecexam exam fit {output}/matrix.tsv -o DIR --components {output}/components.tsv"
    if found is not None:
        answer(replace(found, notes=(*notes, following)), "json" if as_json else None)
    return exit_status(work.caught, status)


def _check(by: str, base_url: str | None) -> None:
    """Refuses options that would change nothing.

    Raises:
        click.UsageError: with what to leave out.
    """
    context = click.get_current_context()
    here, there = ("device", "dtype"), ("key_env",)
    for name in there if base_url is None else here:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            what = "a server: give its --base-url" if base_url is None else "a model here, not for a server"
            raise click.UsageError(f"{option} is for {what}")
    if (
        base_url is not None
        and by == "likelihood"
        and context.get_parameter_source("by") is ParameterSource.COMMANDLINE
    ):
        raise click.UsageError("--by likelihood is for a model here; a server is asked for letters")


def _settings(**given: Any) -> GeneratorSection:
    from pydantic import ValidationError

    from trecexam.config import GeneratorSection

    try:
        return GeneratorSection.model_validate({"name": "openai" if given["base_url"] else "causal", **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise click.UsageError(f"--{str(first['loc'][0]).replace('_', '-')}: {first['msg']}") from None
