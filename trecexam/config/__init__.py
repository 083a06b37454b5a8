"""trecexam.toml -> `TrackConfig`: every setting with its unit and default."""

from trecexam.config.exams import ExamSection
from trecexam.config.file import load_config, render_config
from trecexam.config.graders import GraderSection, SupportSection
from trecexam.config.language_models import GeneratorSection, LanguageModelSection
from trecexam.config.ray import RaySection
from trecexam.config.sections import (
    CONFIG_NAME,
    ScoresSection,
    TrackConfig,
    TrackSection,
    UnparsedPolicy,
)

__all__ = [
    "CONFIG_NAME",
    "ExamSection",
    "GeneratorSection",
    "GraderSection",
    "LanguageModelSection",
    "RaySection",
    "ScoresSection",
    "SupportSection",
    "TrackConfig",
    "TrackSection",
    "UnparsedPolicy",
    "load_config",
    "render_config",
]
