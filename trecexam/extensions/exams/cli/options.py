"""What `exam fit` and `exam improve` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trecexam.extensions.exams.irt.settings import FREE, PRIORS, Settings

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.settings import ModelName, Settings

Command = TypeVar("Command", bound=Callable[..., Any])
_EXISTING = click.Path(path_type=Path, exists=True)


def model_options(folder: str) -> Callable[[Command], Command]:
    """What is fitted, to what, and how.

    Args:
        folder: of a track's outputs, where files go unless it is said.
    """
    return lambda command: _with_model_options(command, folder)


def _with_model_options(command: Command, folder: str) -> Command:
    for option in reversed(
        (
            click.argument("source", type=_EXISTING, metavar="MATRIX|TRACK"),
            click.option(
                "-o",
                "--out",
                type=click.Path(path_type=Path, file_okay=False),
                metavar="DIR",
                help=f"Where the files go. Needed for a MATRIX [default for a TRACK: its out/{folder}].",
            ),
            click.option(
                "--model",
                type=click.Choice(["1pl", "2pl", "3pl"]),
                help="1pl: difficulty; 2pl: and discrimination; 3pl: and guessing "
                "[default: 3pl; for a TRACK, whose items cannot be guessed, 2pl].",
            ),
            click.option(
                "--components",
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
                metavar="FILE",
                help="TSV with `examinee` and a column a component (llm, retriever ...): an ability is the "
                "sum of its components'.",
            ),
            click.option(
                "--groups",
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
                metavar="FILE",
                help="TSV with `item` and a column a grouping (Bloom level ...), several groups set off by "
                "|: information by group.",
            ),
            click.option(
                "--priors/--no-priors",
                default=True,
                help="Weak priors: normal on abilities and difficulties, log-normal on discrimination, beta "
                "on guessing. --no-priors is the published objective [default: priors].",
            ),
            click.option(
                "--min-rating",
                type=click.IntRange(1, 5),
                metavar="N",
                help="TRACK: a run has an item right from this rating on [default: the track's].",
            ),
            click.option(
                "--depth",
                type=click.IntRange(min=1),
                metavar="K",
                help="TRACK: among its first K passages [default: the track's].",
            ),
            click.option("--plots/--no-plots", default=True, help="Draw the plots [default: yes]."),
        )
    ):
        command = option(command)
    return command


def is_track(source: Path) -> bool:
    """Whether this is a track's folder, not one of response files.

    Raises:
        click.UsageError: it is a folder of neither.
    """
    from trecexam.config import CONFIG_NAME

    return (source / CONFIG_NAME).is_file()


def refuse_for_matrix(min_rating: int | None, depth: int | None) -> None:
    """Refuses what says which responses of a track are right.

    Raises:
        click.UsageError: one of them is given.
    """
    for value, name in ((min_rating, "--min-rating"), (depth, "--depth")):
        if value is not None:
            raise click.UsageError(f"{name} is for a TRACK: a matrix says itself what is right")


def settings_of(model: ModelName | None, *, track: bool, priors: bool) -> Settings:
    """What the options say."""
    name: ModelName = model or ("2pl" if track else "3pl")
    weak = {parameter: PRIORS[parameter] for parameter in (*FREE[name], "theta")} if priors else {}
    return Settings.of(name, priors=weak)


def out_folder(out: Path | None, source: Path, *, track: bool, what: str) -> Path:
    """Where the files go.

    Raises:
        click.UsageError: it is not said, and not known.
    """
    if out is None and not track:
        raise click.UsageError("a folder for the files is needed: -o DIR")
    return source / "out" / what if out is None else out
