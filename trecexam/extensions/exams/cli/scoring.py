"""`trecexam exam score`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.options import key_env_option, output_folder_option
from trecexam.cli.reading import writing_or_estimating
from trecexam.cli.signals import exit_status
from trecexam.cli.working import show_estimate, working
from trecexam.errors import plain_reason, quoted
from trecexam.extensions.exams.exam_file import read_exam
from trecexam.results.text import LOST, Note

if TYPE_CHECKING:
    from trecexam.config import GeneratorSection
    from trecexam.results.result import Result


@click.command(
    "score",
    epilog="Example: trecexam exam score exam.jsonl -o taken --model Qwen/Qwen3-0.6B --retriever oracle "
    "--retriever bm25.run --passages corpus.jsonl --examples 0 --examples 1",
)
@click.argument("exam", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="EXAM.jsonl")
@output_folder_option("Write matrix.tsv and components.tsv into this folder; other examinees stay in them.")
@click.option(
    "--model",
    required=True,
    metavar="MODEL",
    help="Use this model: a folder, a hub id, or the server's name for it.",
)
@click.option(
    "--retriever",
    "named",
    multiple=True,
    metavar="closed-book|oracle|RUN",
    help="Show no documents, the question's own passage, or those of a TREC run whose query ids are "
    "question ids. May be repeated [default: closed-book].",
)
@click.option(
    "--examples",
    multiple=True,
    type=click.IntRange(0, 8),
    metavar="N",
    help="Show N in-context examples. May be repeated: each retriever is combined with each N [default: 0].",
)
@click.option(
    "--passages",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Read the runs' passages from this file [default: the exam's own passages].",
)
@click.option(
    "--base-url", metavar="URL", help="Use the model at this OpenAI-compatible server [default: run it here]."
)
@key_env_option
@writing_or_estimating
def scoring(
    exam: Path,
    output: Path,
    model: str,
    named: tuple[str, ...],
    examples: tuple[int, ...],
    passages: Path | None,
    base_url: str | None,
    key_env: str | None,
    estimate: bool,
    as_json: bool,
) -> tuple[Result | None, int]:
    """Have a model take EXAM.jsonl, with each retriever and number of examples.

    A local model chooses the candidate with the highest log-likelihood for its length; a server is prompted
    for a letter. The first three documents of a run are shown to it.

    Prints the accuracy of all examinees in DIR. matrix.tsv and components.tsv are inputs of `exam fit`. Run
    it again with other models to add them. Answers are stored in DIR/.answers.jsonl, so each question is
    sent once.

    Exit status: 0, or 1 if a question was not answered.
    """
    from trecexam.extensions.exams import scoring as stage
    from trecexam.extensions.exams.choosing import examinee
    from trecexam.extensions.exams.matrices import FILES, add_examinee
    from trecexam.graders.writing.asking import estimate as estimate_of
    from trecexam.inputs.protected import refuse_folder
    from trecexam.inputs.track_graders import of_grader

    # With the answers, the folder is one of an earlier call.
    refuse_folder(output, (exam, passages, *map(Path, named)), FILES, always=(*FILES, ".answers.jsonl"))
    questions = tuple(read_exam(exam))
    chosen_retrievers = stage.retrievers(named or (stage.CLOSED_BOOK,))
    texts = stage.texts_of(passages, chosen_retrievers, questions)
    settings = _settings(model=model, base_url=base_url, key_env=key_env)
    todo = [
        stage.ExamSetup(Path(model).name, questions, retriever, number, texts)
        for retriever in chosen_retrievers
        for number in dict.fromkeys(examples or (0,))
    ]
    source = examinee(settings, output)
    if estimate:
        prompts = [stage.exam_prompts(source, setup) for setup in todo]
        return None, show_estimate(partial(estimate_of, prompts), as_json=as_json)
    status, notes = 0, dict[str, None]()
    examinees = None
    with working("answering", "questions") as work:
        for setup in todo:
            took = stage.taking_job(source, setup).ask(work.steps, work.stop)
            examinees = add_examinee(took, questions, output)
            for note in took.notes:
                notes[of_grader(took.name, note)] = None
            if took.why:
                notes[Note(f"{took.name}: ended early: {took.why}", LOST)] = None
            status = max(status, int(len(took.answers) < len(questions)))
            if took.why:
                break
    matrix, components = (quoted(output / name) for name in ("matrix.tsv", "components.tsv"))
    following = f"next: trecexam exam fit {matrix} -o DIR --components {components}"
    if examinees is not None:
        examinees = replace(examinees, notes=(*notes, Note(following, LOST)))
    return examinees, exit_status(work.caught, status)


def _settings(**options: Any) -> GeneratorSection:
    from pydantic import ValidationError

    from trecexam.config import GeneratorSection

    try:
        return GeneratorSection.model_validate(
            {"name": "openai" if options["base_url"] else "causal", **options}
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise click.UsageError(f"--{str(first['loc'][0]).replace('_', '-')}: {plain_reason(first)}") from None
