"""`trecexam plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.options import grader_option, open_chosen, output_option
from trecexam.cli.reading import answer, say
from trecexam.cli.scores import bad_measures
from trecexam.errors import quoted
from trecexam.files import atomic as files
from trecexam.results.result import Tables

if TYPE_CHECKING:
    from trecexam.results.plots.paper import PaperFigure

#: Suffixes of FILE.
KINDS = (".pdf", ".svg", ".png")


@click.command(epilog="Example: trecexam plot scatter mytrack -o fig.pdf --width 3.3in --font-size 7")
@click.argument("name", required=False)
@grader_option
@click.argument("track", required=False, type=click.Path(path_type=Path, file_okay=False), metavar="[TRACK]")
@output_option("Write to this file: .pdf (for papers), .svg or .png.")
@click.option(
    "--width",
    default="single",
    show_default=True,
    metavar="LENGTH",
    help="Set the exact width: 3.3in, 8.4cm, 84mm, 241pt (of TeX), or a column of a paper: single "
    "(3.33in), double (7in).",
)
@click.option("--font-size", type=float, metavar="POINTS", help="Set the font size [default: 8].")
@click.option(
    "-m",
    "--measure",
    metavar="MEASURE",
    help="Plot this measure, in ir_measures' notation [default: the track's first].",
)
def plot(
    name: str | None, grader: str | None, track: Path | None, output: Path | None, **options: Any
) -> None:
    """Draw the plot NAME of TRACK for a paper; without NAME, list the plots.

    Fonts are embedded as TrueType, the picture has no title, and marks differ without colour, too. The same
    track gives the same bytes. The text for a caption goes to stderr.
    """
    # Imports numpy, which --help must not load.
    from trecexam.outputs.plotting import declared_plot, plots_table

    if name is None:
        answer(Tables({"plots": plots_table()}), wide=True)
        return
    declared_plot(name)
    if output is None or output.suffix.lower() not in KINDS:
        raise click.UsageError(f"{output or 'no FILE'}: give -o with a name that ends in {', '.join(KINDS)}")
    if track is None:
        raise click.UsageError(f"give the track too: trecexam plot {name} TRACK -o {quoted(output)}")
    chosen = {key: value for key, value in options.items() if value is not None}
    with open_chosen(track, grader) as opened, bad_measures():
        figure: PaperFigure = opened.plot(name, **chosen)
    say(figure.notes)
    files.replace(output, figure.file(output.suffix[1:].lower()))
    across, up = figure.get_size_inches()
    click.echo(f"{output}: {across:.2f} x {up:.2f} in. {figure.plot.title}. {figure.plot.caption}", err=True)
