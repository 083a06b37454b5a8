"""What `exam fit` and `exam improve` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trecexam.cli.options import grader_option
from trecexam.extensions.exams.irt.settings import FREE, PRIORS, Settings

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.settings import ModelName

Command = TypeVar("Command", bound=Callable[..., Any])
_EXISTING = click.Path(path_type=Path, exists=True)


def model_options(folder: str) -> Callable[[Command], Command]:
    """What is fitted, to what, and how.

    Args:
        folder: of a track's outputs, where files go unless it is said.
    """
    options = (
        click.argument("source", type=_EXISTING, metavar="MATRIX|TRACK"),
        grader_option,
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
    )

    def with_options(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def is_track(source: Path) -> bool:
    """Whether this is a track's folder, not one of response files.

    Raises:
        click.UsageError: it is a folder of neither.
    """
    from trecexam.config import CONFIG_NAME

    return (source / CONFIG_NAME).is_file()


def settings_of(model: ModelName | None, *, track: bool, priors: bool = True) -> Settings:
    """What the options say."""
    name: ModelName = model or ("2pl" if track else "3pl")
    weak = {parameter: PRIORS[parameter] for parameter in (*FREE[name], "theta")} if priors else {}
    return Settings.of(name, priors=weak)


def named_folder(out: Path | None) -> Path:
    """Where the files of a fit go that is of no track.

    Raises:
        click.UsageError: it is not said.
    """
    if out is None:
        raise click.UsageError("a folder for the files is needed: -o DIR")
    return out
