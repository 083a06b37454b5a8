"""trecexam.toml -> `TrackConfig`: every setting with its unit and default."""

from trecexam.config.file import load_config, render_config
from trecexam.config.sections import (
    GeneratorSection,
    GraderSection,
    LanguageModelSection,
    Section,
    TrackSection,
)
from trecexam.config.track_config import CONFIG_NAME, TrackConfig

__all__ = [
    "CONFIG_NAME",
    "GeneratorSection",
    "GraderSection",
    "LanguageModelSection",
    "Section",
    "TrackConfig",
    "TrackSection",
    "load_config",
    "render_config",
]
