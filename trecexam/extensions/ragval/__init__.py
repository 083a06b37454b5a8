"""RAGVAL: questions from knowledge blocks, and answers to them judged for truthfulness and relevance."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "ragval",
    commands={
        "ragval": Command(
            f"{__name__}.cli:ragval", "Judge answers for truthfulness and relevance.", "published evaluators"
        ),
        "ragval questions": Command(
            f"{__name__}.cli.commands:asking", "Write questions about blocks with a language model."
        ),
        "ragval answers": Command(
            f"{__name__}.cli.commands:answering", "Write the bounds: answers without and with the block."
        ),
        "ragval report": Command(
            f"{__name__}.cli.commands:report", "Report systems by their judged answers."
        ),
    },
    features=(f"{__name__}.extra_outputs:RAGVAL",),
    services={"answers": f"{__name__}.dropped:ANSWERS"},
    graders={"ragval": f"{__name__}.grader:FACTORY"},
    bank_commands={"ragval": "ragval questions"},
)
