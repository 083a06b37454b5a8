"""Whether the measures that a track's settings name can be computed."""

from __future__ import annotations

from pathlib import Path

from trecexam.config import TrackConfig
from trecexam.errors import ConfigError


def check_measures(config: TrackConfig, path: Path) -> None:
    """Refuses measures that cannot be computed, before hours of grading go by.

    Args:
        path: the settings' file.

    Raises:
        ConfigError: with the reason.
    """
    from trecexam.scores.evaluate import measure

    for key, names in (
        ("measures", config.measures()),
        ("official_measures", config.official_measures()),
    ):
        for name in names:
            try:
                measure(name, official=key == "official_measures")
            except ValueError as error:
                raise ConfigError(f"[scores] {key}: {error}", path=path) from None
