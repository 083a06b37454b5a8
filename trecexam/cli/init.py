"""`trecexam init`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import trecexam
from converters.errors import ConversionError
from trecexam.errors import plain_reason, quoted
from trecexam.extension import named
from trecexam.files.stamps import sniffed
from trecexam.line.input_files import read_bank_file
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from pydantic import BaseModel

    from trecexam.folder import TrackFolder
    from trecexam.scaffold import Sources

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
LANGUAGE_MODELS = ("seq2seq", "causal", "openai", "erag")
#: Formats of labels of relevance; qrels are pooled as a whole.
LABELS = ("qrels", "umbrela")
#: Graders whose model may be behind a server.
SERVED = ("openai", "erag", "ragval")
ANY = click.Path(path_type=Path, exists=True)


@dataclass(frozen=True)
class InitOptions:
    """What the command line gave; the names are those of the options."""

    queries: Path | None
    bank: tuple[Path, ...]
    passages: Path | None
    qrels: Path | None
    runs: tuple[Path, ...]
    dataset: str | None
    grader: str | None
    recorded: Path | None
    model: str | None
    base_url: str | None
    prompt: str | None
    metric: str | None
    pool_judged: bool
    rag: bool
    link: bool
    folder: Path | None = None
    leaderboard: Path | None = None


@click.command(
    epilog="Example: trecexam init mytrack --queries queries.tsv --bank bank.jsonl --passages passages.jsonl "
    "--qrels qrels.txt --runs runs/  and  trecexam init mytrack --from downloads/scifact"
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
def init(track: Path, **values: Any) -> None:
    """Make the folder TRACK from your files, with a drop folder runs/ and a commented trecexam.toml."""
    # Imports pydantic, which --help must not load.
    from trecexam.folder import TrackFolder
    from trecexam.line.lacking import lacking
    from trecexam.line.sources import provenance_notes
    from trecexam.line.track_graders import folder_of, grader_names
    from trecexam.scaffold import make_track, not_runs, unreadable, without_records

    options = InitOptions(**values)
    if options.folder is not None and options.folder.is_file():
        _init_from_pack(track, options)
        return
    if options.folder is not None:
        options = _with_found(options, options.folder, track)
    sources = _sources(options)
    made = make_track(track, sources)
    _say_unused(options)
    for line in not_runs(sources):
        click.echo(f"note: {line} It is in {track / 'runs'} now, and will be rejected", err=True)
    if made:
        click.echo(
            f"created {track} ({plural(len(made), 'file')}, settings in {track / 'trecexam.toml'})",
            err=True,
        )
        if not options.pool_judged:
            click.echo(
                "note: nDCG, AP and others depend on the pool of these runs; do not compare them with values "
                "from other pools; `pool_judged = true` in [track] adds the passages of official judgments",
                err=True,
            )
    else:
        click.echo(f"{track} is up to date; nothing to do", err=True)
    folder = TrackFolder.open(track)
    official = folder.qrels()
    for line in () if official is None else provenance_notes(official, folder.shown(official)):
        click.echo(f"note: {line}", err=True)
    if options.qrels and not options.pool_judged and not _is_in(options.recorded, "qrels"):
        _say_judged_outside(track)
    for line in (*_unset(options, track), *without_records(track, sources), *unreadable(track, sources)):
        click.echo(f"warning: {line}", err=True)
    of_graders: dict[str, list[str]] = {}
    for name in grader_names(folder):
        for line in lacking(folder_of(folder, name)):
            of_graders.setdefault(line, []).append(name)
    for line, names in of_graders.items():
        click.echo(f"warning: {', '.join(names) + ': ' if options.rag else ''}{line}", err=True)
    click.echo(f"next: {_next(folder, of_graders)}", err=True)


def _init_from_pack(track: Path, options: InitOptions) -> None:
    """Make the track of a pack.

    Raises:
        click.UsageError: another option is given.
    """
    if any(getattr(options, each.name) for each in fields(options) if each.name != "folder"):
        raise click.UsageError("--from PACK makes the track as it was: give no other option with it")
    n_files = named("trecexam.extensions.pack.packing:unpack")(options.folder, track)
    click.echo(f"created {track} ({plural(n_files, 'file')}, with the grades of {options.folder})", err=True)
    click.echo(f"next: trecexam watch {quoted(track)} --once", err=True)


def _unset(options: InitOptions, track: Path) -> list[str]:
    """A line if the grader is behind a server and the server or its model is not named."""
    values = (("base_url", options.base_url), ("model", options.model))
    names = [f"`{name}`" for name, value in values if value is None]
    if _grader(options) != "openai" or not names:
        return []
    return [f"{track / 'trecexam.toml'}: the grader openai needs {' and '.join(names)}: set in [grader]"]


def _next(folder: TrackFolder, lacking: Mapping[str, Collection[str]]) -> str:
    """Say what to do after `init`; in a track with judgments also what can be done without a bank.

    Args:
        lacking: what is missing -> the graders that lack it.
    """
    from trecexam.line.track_graders import folder_of, grader_names

    root = quoted(folder.root)
    watch = f"trecexam watch {root} --once"
    folders = {name: folder_of(folder, name) for name in grader_names(folder)}
    without: set[str] = set()
    for name, each in folders.items():
        try:
            for path in each.bank():
                read_bank_file(path)
        except ConversionError as error:
            return f"mend {error.path}, then: {watch}"
        except trecexam.TrecexamError as error:
            without |= {name} & {*lacking.get(str(error), ())}
    alone = ""
    if without and folder.qrels() is not None:
        has_texts = folder.passages() is not None or folder.config.track.dataset is not None
        of, command = (", texts", "learn") if has_texts else ("", "holes")
        alone = f"on runs{of} and judgments alone: trecexam {command} {root}"
    if len(without) < len(folders):
        return f"{watch}; or, {alone}" if alone else watch
    return f"{alone}; with a test bank: {watch}" if alone else f"put a test bank into {root}, then: {watch}"


def _with_found(options: InitOptions, folder: Path, track: Path) -> InitOptions:
    """The options, with the files of a folder where none is named; what they are taken for is printed.

    Raises:
        TrackError: no file there is of use.
    """
    from trecexam.folder_roles import ONE, look_at, told
    from trecexam.line.sources import provenance_file

    files = look_at(folder, but=track)
    beside = {provenance_file(each.path) for each in files if each.role == "qrels"}
    files = tuple(each for each in files if each.path not in beside)
    named = (*ONE[:-1], "bank", "runs")
    left = {role: f"--{role} is given" for role in named if getattr(options, role)}
    if options.grader not in (None, "recorded") and not options.rag:
        left.setdefault("recorded", f"--grader {options.grader} grades")
    files = tuple(
        replace(each, role=None, why=left[each.role])
        if each.role in left
        else replace(each, role=None, why="--rag takes labels of relevance alone")
        if options.rag and each.role == "recorded" and not _is_in(each.path, *LABELS)
        else each
        for each in files
    )
    for line in told(files, folder):
        click.echo(line, err=True)
    responses = not options.rag and any(each.format == "responses" and each.role for each in files)
    bank = options.bank or any(each.role in ("bank", "recorded") for each in files)
    if responses and (bank or options.grader in ("recorded", "erag", "ragval")):
        click.echo("note: these are responses: --rag adds graders of nuggets, support and more", err=True)
    elif responses:
        click.echo(
            "note: responses were given without a test bank, so the track has the four graders of --rag",
            err=True,
        )
        options = replace(options, rag=True)
    paths_by_role: dict[str, Any] = {each.role: each.path for each in files if each.role in ONE}
    for role in ("bank", "runs"):
        if role not in left:
            paths_by_role[role] = tuple(each.path for each in files if each.role == role)
    return replace(options, **paths_by_role)


def _is_in(recorded: Path | None, *formats: str) -> bool:
    """Whether the grades are there, and in one of these formats."""
    return recorded is not None and sniffed(recorded) in formats


def _say_judged_outside(root: Path) -> None:
    """Says how many judged passages are not pooled, as far as the folder has what tells."""
    with suppress(trecexam.TrecexamError, ConversionError), trecexam.open_track(root) as track:
        outside, depth = track.files.judged_outside_pool(), track.folder.config.track.depth
        if outside:
            are, them = ("is", "it, if it has") if outside == 1 else ("are", "those with")
            click.echo(
                f"{plural(outside, 'judged passage')} {are} outside of the runs' first {depth}; "
                f"--pool-judged also grades {them} a text",
                err=True,
            )


def _sources(options: InitOptions) -> Sources:
    """What goes into the folder.

    Raises:
        click.BadParameter: an option cannot be used.
        GraderError: the prompt cannot be used.
    """
    from trecexam.graders import available
    from trecexam.line.sources import provenance_file
    from trecexam.scaffold import Sources

    if options.rag:
        _check_rag(options)
    if options.grader is not None and options.grader not in available():
        grader_names = ", ".join(available())
        raise click.BadParameter(f"'{options.grader}'; known here: {grader_names}", param_hint="--grader")
    settings: dict[str, dict[str, Any]] = {"track": {}, "grader": _grader_settings(options)}
    if options.pool_judged:
        settings["track"]["pool_judged"] = True
    return Sources(
        options.queries,
        options.bank,
        options.passages,
        options.qrels,
        provenance_file(options.qrels),
        options.runs,
        options.recorded,
        options.dataset,
        options.leaderboard,
        _grader(options),
        _model(options),
        _prompt(options),
        link=options.link,
        rag=options.rag,
        settings=settings,
    )


def _check_rag(options: InitOptions) -> None:
    """Refuses graders and recordings that are not for a RAG track.

    Raises:
        click.BadParameter: with what it takes.
    """
    if options.grader in ("recorded", "erag", "ragval"):
        raise click.BadParameter(
            f"'{options.grader}': --rag is for language models and embedding", param_hint="--grader"
        )
    if options.recorded is not None and not _is_in(options.recorded, *LABELS):
        raise click.BadParameter(
            "with --rag these are labels of relevance (qrels) or umbrela's judgments; name another "
            "recording in the section of trecexam.toml whose grades it has",
            param_hint="--recorded",
        )


def _grader(options: InitOptions) -> str | None:
    """The grader: the one that is named, or the only one that a setting is for."""
    if options.grader is None and options.metric is not None:
        return "erag"
    if options.grader is None and options.base_url is not None:
        return "openai"
    return options.grader


def _grader_settings(options: InitOptions) -> dict[str, str]:
    from trecexam.config import GraderSection

    optional = {"base_url": options.base_url, "metric": options.metric}
    settings = {key: value for key, value in optional.items() if value is not None}
    _check(GraderSection, settings)
    return settings


def _say_unused(options: InitOptions) -> None:
    """Says which settings the grader does not look at."""
    grader = _grader(options) or ("recorded" if options.recorded and not options.rag else "embedding")
    for name, graders in (("base_url", SERVED), ("metric", ("erag",)), ("prompt", LANGUAGE_MODELS)):
        if getattr(options, name) is not None and grader not in graders:
            option = name.replace("_", "-")
            click.echo(
                f"note: --{option} changes nothing: it is for --grader {', '.join(graders)}, and this grader "
                f"is {grader}",
                err=True,
            )


def _model(options: InitOptions) -> str | None:
    """The model; a folder is meant from where the command runs, but is read from the track's folder."""
    model = options.model
    if model is not None and Path(model).is_dir():
        return str(Path(model).resolve())
    served = _grader(options) == "openai" or options.base_url
    if model is not None and not served and model.startswith(("/", ".", "~")):
        raise click.BadParameter(f"no such folder: {model}", param_hint="--model")
    return model


def _prompt(options: InitOptions) -> str | Path | None:
    """The prompt, a path where it is a file; one that cannot be used shows before a folder is made."""
    from trecexam.folder import PROMPT_SUFFIXES
    from trecexam.graders import available
    from trecexam.graders.prompts import named

    prompt = options.prompt
    if prompt is None:
        return None
    grader = _grader(options)
    check = None if grader is None else available()[grader].check_prompt
    if check is not None:
        check(Path(prompt))
    else:
        named(prompt, Path())
    return Path(prompt) if Path(prompt).suffix.lower() in PROMPT_SUFFIXES else prompt


def _check(section: type[BaseModel], settings: dict[str, str]) -> None:
    """Refuses what trecexam.toml could not hold, and does not repeat it: it may be a key."""
    from pydantic import ValidationError

    try:
        section.model_validate(settings)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise click.BadParameter(plain_reason(first), param_hint=option) from None
