"""trecexam.toml -> `TrackConfig`: every setting with its unit and default."""

from trecexam.config.file import line_of_setting, load_config, render_config, toml_value
from trecexam.config.sections import (
    GeneratorSection,
    GraderSection,
    LanguageModelSection,
    NamedGrader,
    ScoresSection,
    Section,
    TrackSection,
    UnparsedPolicy,
)
from trecexam.config.track_config import CONFIG_NAME, TrackConfig, effective, purse_of

__all__ = [
    "CONFIG_NAME",
    "GeneratorSection",
    "GraderSection",
    "LanguageModelSection",
    "NamedGrader",
    "ScoresSection",
    "Section",
    "TrackConfig",
    "TrackSection",
    "UnparsedPolicy",
    "effective",
    "line_of_setting",
    "load_config",
    "purse_of",
    "render_config",
    "toml_value",
]
