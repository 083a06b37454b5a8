"""`trecexam convert` and `trecexam formats`."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import click

import converters
from converters.convert import converted, targets
from converters.unpacking import without_ending
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError
from trecexam.files.stamps import sniffed
from trecexam.results.result import Tables
from trecexam.results.table import Layout, Table


@click.command(
    epilog="Example: trecexam convert responses.jsonl passages.jsonl --to passages  and  "
    "trecexam convert responses.jsonl my.run --to run"
)
@click.argument("source", metavar="IN", type=click.Path(path_type=Path, exists=True))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--from",
    "source_format",
    metavar="FORMAT",
    help="Read IN as this format; see `trecexam formats` [default: detected from the content].",
)
@click.option(
    "--to",
    "target_format",
    metavar="FORMAT",
    help="Write this format; see `trecexam formats` [default: detected from OUT's name].",
)
@click.option(
    "--pool",
    type=click.Choice(["text", "citations", "both"]),
    default="text",
    show_default=True,
    help="Write the texts of generated responses, the passages that they cite, or both (--to run and --to "
    "passages).",
)
@click.option("--run", metavar="NAME", help="Write this run of a Rubric pool (with --to run).")
def convert(
    source: Path,
    target: Path,
    source_format: str | None,
    target_format: str | None,
    pool: Any,
    run: str | None,
) -> int:
    """Convert the file IN to another format and write it to OUT.

    OUT may end in .gz, .bz2, .xz or .zst; an existing file is replaced, but none in a track. IN may be
    a folder of QUERY_ID.txt files: the generated responses of one run, named like the folder.

    Exit status: 0, or 1 if a line of responses was skipped.
    """
    from trecexam.inputs.protected import refuse_protected

    if target.exists() and target.samefile(source):
        raise click.UsageError("IN and OUT are the same file")
    refuse_protected(target, runs=True)
    format_name = target_format or _format_of_name(target)
    part = target.with_name(f".{os.getpid()}.{target.name}")
    skipped: list[converters.ConversionError] = []
    try:
        records = converted(source, source_format, format_name, pool, run, skipped.append)
        converters.write(records, part, format_name)
        part.replace(target)
    except converters.ConversionError as error:
        kind = None if source_format is None or source.is_dir() else sniffed(source)
        if kind in (None, source_format):
            raise
        reason = f"{error.reason}; the file looks like '{kind}': --from {kind}"
        raise converters.ConversionError(error.path, error.line, reason) from None
    except ValueError as error:
        raise TrecexamError(str(error), path=source) from None
    except OSError as error:
        raise TrecexamError(f"cannot be written: {error.strerror}", path=target) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    for bad in skipped:
        click.echo(f"skipped: {bad} (lost: {bad.lost})", err=True)
    click.echo(f"wrote {target} ({format_name})", err=True)
    return 1 if skipped else 0


def _format_of_name(target: Path) -> str:
    suffix = Path(without_ending(target.name)).suffix
    matching = [
        file_format.name
        for file_format in converters.formats()
        if file_format.write and suffix in file_format.extensions[:1]
    ]
    if len(matching) != 1:
        raise click.UsageError(f"the name {target.name} does not tell the format: name it with --to")
    return matching[0]


@click.command(epilog="Example: trecexam formats")
@reading
def formats() -> Tables:
    """List the file formats: what each is, whether it can be read and written, and an example line."""
    rows = tuple(
        (
            file_format.name,
            " ".join(file_format.extensions),
            "yes",
            "yes" if file_format.write else "no",
            ", ".join(targets(file_format.name)),
            file_format.description,
            file_format.told_by,
            file_format.example,
        )
        for file_format in converters.formats()
    )
    names = ("format", "extensions", "read", "write", "also converts to", "what", "told apart by", "example")
    return Tables({"formats": Table(names, rows, layout=Layout(("format",), ("what",)))})
