"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trecexam.chosen import chosen_grader, taken_graders

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.scale_map import RuleName

Command = TypeVar("Command", bound=Callable[..., Any])


def _choose(ctx: click.Context, param: click.Parameter, name: str | None) -> None:
    """Has what opens the track take this grader; where none is named, says at the end whose the answer is."""
    chosen_grader.set(name)
    taken: dict[str, tuple[str, ...]] = {}
    taken_graders.set(taken)

    def end() -> None:
        chosen_grader.set(None)
        taken_graders.set(None)
        for grader, others in taken.items():
            rest = ", ".join(each for each in others if each != grader)
            click.echo(f"note: this is of the grader {grader}; --grader takes another one: {rest}", err=True)

    ctx.call_on_close(end)


#: Of commands that are of a track as a whole.
whole_track_argument = click.argument(
    "track", type=click.Path(path_type=Path, file_okay=False), metavar="TRACK"
)
_grader_option = click.option(
    "--grader",
    "chosen",
    metavar="NAME",
    expose_value=False,
    callback=_choose,
    help="Of a track with several graders, the one of this name.",
)


def track_argument(command: Command) -> Command:
    """The argument TRACK, and the option that says which of its graders is meant."""
    return whole_track_argument(_grader_option(command))


json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
#: Of commands that print a table with --estimate alone.
estimate_json_option = click.option(
    "--json", "as_json", is_flag=True, help="With --estimate: JSON instead of a table."
)
estimate_option = click.option(
    "--estimate",
    is_flag=True,
    help="Show how many prompts, tokens, how much money; or how long, by a small sample. Asks no server.",
)
key_env_option = click.option(
    "--key-env", metavar="NAME", help="The environment variable with that server's key."
)
measure_option = click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="As ir_measures prints it: nDCG@10, P(rel=4)@20, Cover(rel=4)@20, alpha_nDCG@20, or "
    "Cover(rel=4,weights=vital)@20, of vital items alone; nuggetizer's all_score, vital_score and "
    "strict_... too. May be repeated.",
)
wide_option = click.option(
    "--wide", is_flag=True, help="All columns and whole names, however narrow the terminal."
)
aligned_option = click.option(
    "--table", "aligned", is_flag=True, help="In a pipe what a terminal shows, without colour: for a pager."
)
thresholds_option = click.option(
    "--thresholds",
    metavar="LABEL=OFFICIAL,...",
    help="Of --map thresholds, as 4=1,5=2: from label 4 on 1, from 5 on 2, below 0 [default: the track's "
    "min_rating=min_relevant].",
)


def in_a_folder(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """The path; a folder that is not there is a slip of the keys, and is said before the work."""
    if path is not None and not path.parent.is_dir():
        raise click.UsageError(f"{path}: there is no folder {path.parent}; make it, or mend the path", ctx)
    return path


def cuts_of(rule: RuleName | None, text: str | None) -> dict[int, int]:
    """What --thresholds says: automatic label -> official label; {} where it is not given.

    Raises:
        click.UsageError: it cannot be read, or does not go with --map.
    """
    if text is None:
        return {}
    if rule not in (None, "thresholds"):
        raise click.UsageError(f"--thresholds does not go with --map {rule}")
    pairs = [re.fullmatch(r"\s*(\d{1,9})\s*=\s*(\d{1,9})\s*", part) for part in text.split(",")]
    cuts = {int(pair[1]): int(pair[2]) for pair in pairs if pair}
    if len(cuts) != len(pairs):
        raise click.UsageError(
            f"--thresholds {text}: give LABEL=OFFICIAL,... with each label once, as 4=1,5=2"
        )
    return cuts


def first_option(what: str) -> Callable[[Command], Command]:
    """The option that limits what is asked about to the beginning of a file."""
    return click.option(
        "--limit", type=click.IntRange(min=1), metavar="N", help=f"Of the first N {what} alone."
    )


def refuse_json_alone(*, as_json: bool) -> None:
    """To be called where no estimate is asked for, see `estimate_json_option`."""
    if as_json:
        raise click.UsageError("--json is the form of --estimate")
