"""Arguments and options shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trecexam.errors import TrecexamError
from trecexam.files.stamps import sniffed

if TYPE_CHECKING:
    from trecexam.features.fill.rules import RuleName
    from trecexam.grades.graded_track import GradedTrack
    from trecexam.track import Track

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")


#: TRACK argument of commands on a whole track.
whole_track_argument = click.argument(
    "track", type=click.Path(path_type=Path, file_okay=False), metavar="TRACK"
)
#: TRACK argument of commands that also accept other input.
grader_option = click.option(
    "--grader",
    metavar="NAME",
    help="Use the grader of this name, if the track has several.",
)


def open_chosen(path: Path, grader: str | None) -> Track:
    """Open the track in a folder for the selected grader; use the result in a `with` block."""
    # Imports numpy and pydantic.
    from trecexam.folder import TrackFolder
    from trecexam.grades.open_track import OpenTrack
    from trecexam.track import Track

    return Track(OpenTrack(TrackFolder.open(path)), grader)


def track_argument(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the argument TRACK and the option --grader, as `track`: an opened track."""

    @wraps(command)
    def with_track(track: Path, grader: str | None, **options: Any) -> T:
        with open_chosen(track, grader) as chosen:
            return command(track=chosen, **options)

    return whole_track_argument(grader_option(with_track))


def answering(
    track: Track,
    applies: Callable[[GradedTrack], bool] = lambda graded: True,
    *,
    documents: bool = False,
    bank_needed: bool = True,
) -> Track:
    """Return the track of the grader that answers, and print its name unless the user chose it.

    Args:
        applies, documents, bank_needed: as for `Selection.loader`.
    """
    # Imports numpy and pydantic.
    from trecexam.track import selection

    selected = selection(track)
    grader = selected.loader(applies, documents=documents, bank_needed=bank_needed).name
    if note := selected.grader_note(grader):
        click.echo(f"note: {note}", err=True)
    return track[grader]


#: Output options of commands that print a table only with --estimate.
estimate_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the estimate as JSON; implies --estimate."
)
estimate_option = click.option(
    "--estimate",
    is_flag=True,
    help="Print the number of prompts and, of a server, tokens and the cost. Calls no server.",
)
key_env_option = click.option(
    "--key-env", metavar="NAME", help="Read the server's key from this environment variable."
)


measure_option = click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Use this measure; may be repeated. Names are those of ir_measures: nDCG@10, P(rel=4)@20, "
    "alpha_nDCG@20; also Cover(rel=4)@20, Cover(rel=4,weights=vital)@20 (vital items only), and "
    "nuggetizer's all_score, vital_score and strict_... [default: the track's].",
)


#: Rule from automatic to official labels, with its cuts if given.
Map = tuple["RuleName", dict[int, int]]
_RULES: tuple[RuleName, ...] = ("fitted", "identity", "thresholds")


def refuse_nan(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Return the number; refuse nan, which click accepts in every range."""
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number", ctx, param)
    return value


def _map(ctx: click.Context, param: click.Parameter, value: str | None) -> Map | None:
    """Return the rule of `--map` with its cuts."""
    if value is None:
        return None
    for rule in _RULES:
        if value == rule:
            return rule, {}
    pairs = [re.fullmatch(r"\s*(\d{1,9})\s*=\s*(\d{1,9})\s*", part) for part in value.split(",")]
    cuts = {int(pair[1]): int(pair[2]) for pair in pairs if pair}
    if len(cuts) == len(pairs):
        return "thresholds", cuts
    raise click.BadParameter(
        f"'{value}': give fitted, identity, thresholds, or LABEL=OFFICIAL,... with each label once, as "
        "4=1,5=2",
        ctx,
        param,
    )


map_option = click.option(
    "--map",
    "mapped",
    callback=_map,
    metavar="fitted|identity|thresholds|LABEL=OFFICIAL,...",
    help="Map automatic to official labels. 4=1,5=2: labels from 4 on become 1, from 5 on 2, lower ones 0; "
    "thresholds: the track's min_rating=min_relevant [default: fitted, on passages that have both].",
)


def refuse_inputs(output: Path, values: Iterable[object]) -> None:
    """Refuse an output that is one of the command's own inputs.

    Args:
        values: the values of other parameters; paths among them, also in tuples, are inputs. A folder stands
            for its files of known formats.
    """
    paths = [path for value in values for path in (value if isinstance(value, tuple) else (value,))]
    if not output.is_file():
        return
    # Imports pydantic, and all formats.
    from trecexam.inputs.protected import input_files

    for path in paths:
        if not isinstance(path, Path) or (path.is_dir() and sniffed(output) is None):
            continue
        if any(file.is_file() and output.samefile(file) for file in input_files(path)):
            raise TrecexamError("is an input of this command; name another file", path=output)


def output_path(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Return the path of an output; refuse a protected file before any work."""
    if path is not None and not path.parent.is_dir():
        raise click.UsageError(
            f"{path}: the folder {path.parent} does not exist: make it, or correct the path", ctx
        )
    if path is not None:
        # Imports pydantic.
        from trecexam.inputs.protected import refuse_protected

        refuse_protected(path)
    return path


def output_option(text: str, *, required: bool = False) -> Callable[[Command], Command]:
    """Return the option -o for a file; `text` begins its help."""
    path = click.Path(path_type=Path, dir_okay=False)
    text += " An existing file is replaced, but none in a track."
    return click.option(
        "-o", "--output", type=path, required=required, metavar="FILE", callback=output_path, help=text
    )


def output_folder_option(
    text: str, *, required: bool = True, metavar: str = "DIR"
) -> Callable[[Command], Command]:
    """Return the option -o for a folder; `text` is its help."""
    path = click.Path(path_type=Path, file_okay=False)
    return click.option("-o", "--output", type=path, required=required, metavar=metavar, help=text)
