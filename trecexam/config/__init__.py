"""trecexam.toml -> `TrackConfig`: every setting with its unit and default."""

from trecexam.config.file import load_config, render_config
from trecexam.config.sections import (
    CONFIG_NAME,
    GraderSection,
    RaySection,
    ScoresSection,
    TrackConfig,
    TrackSection,
    UnparsedPolicy,
)

__all__ = [
    "CONFIG_NAME",
    "GraderSection",
    "RaySection",
    "ScoresSection",
    "TrackConfig",
    "TrackSection",
    "UnparsedPolicy",
    "load_config",
    "render_config",
]
