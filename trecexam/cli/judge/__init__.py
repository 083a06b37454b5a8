"""`trecexam judge`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "plan": ("trecexam.cli.judge.plan", "plan", "Divide the passages to judge among assessors."),
    "progress": ("trecexam.cli.judge.progress", "progress", "How far each assessor is, and how fast."),
    "agreement": ("trecexam.cli.judge.agreement", "agreement", "How far assessors agree, and where not."),
    "export": ("trecexam.cli.judge.files", "export", "Write qrels, six-column qrels and all judgments."),
    "import": ("trecexam.cli.judge.files", "import_", "Take in a table of judgments."),
}


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10%",
)
def judge() -> None:
    """A campaign of assessors: who judges what, how far they are and agree, and the judgments as files."""
