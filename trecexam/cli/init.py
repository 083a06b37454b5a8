"""`trecexam init`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import converters
from converters.errors import ConversionError
from converters.lines import head, head_object
from trecexam.errors import plain_reason, quoted, rejected_notes
from trecexam.extension import provided
from trecexam.files.stamps import Rejected
from trecexam.results.text import plural

if TYPE_CHECKING:
    from trecexam.folder import TrackFolder
    from trecexam.scaffold import Sources

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
ANY = click.Path(path_type=Path, exists=True)
#: Options for settings of [grader], and settings of some graders only.
OWN = ("base_url", "metric", "model")
SETTINGS = ("base_url", "metric", "prompt")


@click.command(
    epilog="Example: trecexam init mytrack --queries queries.tsv --bank bank.jsonl --passages passages.jsonl "
    "--qrels qrels.txt --runs runs/  and  trecexam init mytrack --from downloads/rag25"
)
@click.argument("track", type=click.Path(path_type=Path, file_okay=False), metavar="TRACK")
@click.option(
    "--from",
    "folder",
    type=ANY,
    metavar="FOLDER|PACK",
    help="Use the files of this download, detected by content; other options take precedence. Or make the "
    "track of this pack of `trecexam export pack`, with its grades.",
)
@click.option("--queries", type=FILE, help="Copy these queries: `query_id<TAB>text`, or JSONL.")
@click.option(
    "--bank",
    type=FILE,
    multiple=True,
    help="Copy this test bank, JSONL: questions, nuggets or gold outputs. May be repeated.",
)
@click.option("--passages", type=FILE, help="Copy these passages: JSONL with docid and text.")
@click.option("--qrels", type=FILE, help="Copy these official judgments, to compare with.")
@click.option("--runs", type=ANY, multiple=True, metavar="DIR|FILE", help="Copy these runs. May be repeated.")
@click.option(
    "--dataset",
    metavar="ID",
    help="Take queries, passages and qrels from this ir_datasets id, unless given as files.",
)
@click.option(
    "--grader",
    metavar="NAME",
    help="Use this grader; see `trecexam graders` [default: embedding; recorded with --recorded].",
)
@click.option(
    "--recorded",
    type=FILE,
    help="Use existing grades: a Rubric graded pool, a grades export, or qrels, of an LLM for example.",
)
@click.option(
    "--model", metavar="DIR|ID", help="Use this model: a folder, a hub id, or the server's name for it."
)
@click.option(
    "--base-url",
    metavar="URL",
    help="Use the model at this server, http://localhost:8000/v1 [implies --grader openai].",
)
@click.option(
    "--prompt",
    metavar="NAME|FILE",
    help="Use this prompt: a name of `trecexam graders --prompts`, or a .toml or .jinja file. With --rag, "
    "the prompt of coverage, [graders.rubric].",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="Score outputs with em, f1, rouge-l, accuracy or module:function [implies erag].",
)
@click.option(
    "--pool-judged",
    is_flag=True,
    help="Pool, grade and label the judged passages that have a text, too, though no run has them.",
)
@click.option(
    "--rag",
    is_flag=True,
    help="Make a track for TREC RAG: four graders of the same files, for nuggets, support, retrieval and "
    "coverage. --recorded then has relevance labels.",
)
@click.option("--link", is_flag=True, help="Link the files instead of copying them.")
def init(track: Path, folder: Path | None, **options: Any) -> None:
    """Make the folder TRACK from your files, with a drop folder runs/ and a commented trecexam.toml."""
    # Imports pydantic, which --help must not load.
    from trecexam.folder import TrackFolder
    from trecexam.inputs.sources import provenance_notes
    from trecexam.scaffold import LABELS, Sources, described, make_track

    if folder is not None and folder.is_file():
        if any(options.values()):
            raise click.UsageError("--from PACK makes the track as it was: give no other option with it")
        n_files = provided("packs").unpack(folder, track)
        _say(f"created {track} ({plural(n_files, 'file')}, with the grades of {folder})")
        _say(f"next: trecexam watch {quoted(track)} --once")
        return
    pool_judged = options.pop("pool_judged")
    grader_options = {name: value for name in OWN if (value := options.pop(name)) is not None}
    settings = {"track": {"pool_judged": True} if pool_judged else {}, "grader": grader_options}
    sources = Sources(folder=folder, settings=settings, **options)
    files = sources.look(track)
    recorded = next((each.format for each in files if each.role == "recorded"), None)
    if folder is not None:
        below = [each for each in files if each.path.is_relative_to(folder)]
        inside = [each for each in below if ".." not in each.path.relative_to(folder).parts]
        for line in described(inside, folder):
            _say(line)
        if not sources.rag and any(each.format == "responses" and each.role for each in files):
            _say("note: these are responses: --rag adds graders of nuggets, support and more")
    if sources.rag and recorded is not None and recorded not in LABELS:
        raise click.BadParameter(
            "with --rag these are labels of relevance (qrels) or umbrela's judgments; name another "
            "recording in the section of trecexam.toml whose grades it has",
            param_hint="--recorded",
        )
    made = make_track(track, _with_grader(sources, grader_options, recorded=recorded is not None), files)
    if made:
        _say(f"created {track} ({plural(len(made), 'file')}, settings in {track / 'trecexam.toml'})")
    else:
        _say(f"{track} is up to date; nothing to do")
    opened = TrackFolder.open(track)
    official = opened.qrels()
    if made and not pool_judged:
        adds = "; `pool_judged = true` in [track] adds the passages of official judgments"
        _say(
            "note: nDCG, AP and others depend on the pool of these runs; do not compare them with values "
            f"from other pools{adds if official else ''}"
        )
    for line in () if official is None else provenance_notes(official, opened.shown(official)):
        _say(f"note: {line}")
    for line in _no_runs(opened):
        _say(line)
    _say(f"next: {_next(opened)}")


def _say(line: str) -> None:
    click.echo(line, err=True)


def _with_grader(sources: Sources, settings: dict[str, str], *, recorded: bool) -> Sources:
    """Check the settings of [grader], add the implied grader, and make a model's folder absolute."""
    from pydantic import ValidationError

    from trecexam.config import GraderSection
    from trecexam.folder import PROMPT_SUFFIXES
    from trecexam.graders import available
    from trecexam.graders.prompts import named as named_prompt

    factories, grader, prompt = available(), sources.grader, sources.prompt
    readers = {name: [each for each in factories if name in factories[each].reads] for name in SETTINGS}
    try:
        GraderSection.model_validate(settings)
    except ValidationError as error:
        # Never print the value: it may be a key.
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise click.BadParameter(plain_reason(first), param_hint=option) from None
    if grader is None and "metric" in settings:
        grader = readers["metric"][0]
    elif grader is None and "base_url" in settings:
        grader = "openai"
    used = grader or ("recorded" if recorded and not sources.rag else "embedding")
    if used not in factories:
        raise click.BadParameter(f"'{used}'; known here: {', '.join(factories)}", param_hint="--grader")
    if sources.rag and (used == "recorded" or not factories[used].standard):
        raise click.BadParameter(
            f"'{used}': --rag is for language models and embedding", param_hint="--grader"
        )
    model = settings.get("model")
    if model is not None and Path(model).is_dir():
        # Paths in trecexam.toml are relative to the track's folder.
        settings["model"] = str(Path(model).resolve())
    elif used != "openai" and "base_url" not in settings and (model or "").startswith(("/", ".", "~")):
        raise click.BadParameter(f"no such folder: {model}", param_hint="--model")
    if prompt is not None:
        # Report an unusable grader before making a folder.
        check = factories[used].check_prompt
        check(Path(prompt)) if check is not None else named_prompt(str(prompt), Path())
        prompt = Path(prompt) if Path(prompt).suffix.lower() in PROMPT_SUFFIXES else prompt
    for name in (*settings, *(() if prompt is None else ("prompt",))):
        if name in readers and used not in readers[name]:
            option, graders = name.replace("_", "-"), ", ".join(readers[name])
            _say(f"note: --{option} changes nothing: it is for --grader {graders}, and this grader is {used}")
    return replace(sources, grader=grader, prompt=prompt)


def _no_runs(folder: TrackFolder) -> Iterator[str]:
    """Yield a line per dropped file that is no run, like `watch`, but without reading JSON files."""
    rows = []
    for path in folder.run_files():
        try:
            if head_object(head(path)) is None:
                converters.read(path, "run")
        except ConversionError as error:
            rows.append(Rejected(folder.shown(path), error.line, error.reason, "file"))
    return rejected_notes(rows)


def _next(folder: TrackFolder) -> str:
    """Return the next steps after `init`; with judgments also the commands that need no bank."""
    from trecexam.inputs.inputs import read_bank_file

    root, grader = quoted(folder.root), folder.config.grader
    watch = f"trecexam watch {root} --once"
    banks = folder.bank(optional=True)
    try:
        for path in banks:
            read_bank_file(path)
    except ConversionError as error:
        return f"mend {error}, then: {watch}"
    if banks or folder.config.graders or grader.prompt is not None or grader.name == "recorded":
        return watch
    if folder.qrels() is None:
        return f"put a test bank into {root}, then: {watch}"
    has_texts = folder.passages() is not None or folder.config.track.dataset is not None
    if has_texts:
        return f"on runs, texts and judgments alone: trecexam learn {root}; with a test bank: {watch}"
    return f"on runs and judgments alone: trecexam holes {root}; with a test bank: {watch}"
