"""Language models that write free text, for test banks: in this process, on a cluster, or behind a server."""

from trecexam.graders.writing.base import Fitted, Unwritten, Writer, WrittenText
from trecexam.graders.writing.create import (
    Instruction,
    create_writer,
    grading_writer,
    keeping_writers,
)

__all__ = [
    "Fitted",
    "Instruction",
    "Unwritten",
    "Writer",
    "WrittenText",
    "create_writer",
    "grading_writer",
    "keeping_writers",
]
