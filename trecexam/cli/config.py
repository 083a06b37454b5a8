"""`trecexam config`."""

from __future__ import annotations

from pathlib import Path

import click

from trecexam.cli import show


@click.command(epilog="Example: trecexam config mytrack")
@click.argument("track", type=click.Path(path_type=Path, file_okay=False), metavar="[TRACK]", required=False)
def config(track: Path | None) -> None:
    """Every setting of trecexam.toml, its description, and its default or what TRACK sets; as TOML.

    What TRACK sets stands there as a setting, all else as a comment.
    """
    # Behind it is pydantic, which --help must not wait for.
    from trecexam.config import render_config
    from trecexam.track import TrackFolder

    values = {} if track is None else TrackFolder.open(track).config.model_dump(exclude_unset=True)
    show.lines(render_config(values).splitlines())
