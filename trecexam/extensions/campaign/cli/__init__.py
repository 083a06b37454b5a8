"""`trecexam judge`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    name: (f"{__name__}.commands", function, help_line)
    for name, function, help_line in (
        ("plan", "plan", "Divide the passages to judge among assessors."),
        ("agreement", "agreement", "Show how far assessors agree, and where not."),
        ("export", "export", "Write qrels, six-column qrels and all judgments."),
        ("import", "import_", "Add a table of judgments."),
    )
}


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10%",
)
def judge() -> None:
    """Run a campaign of assessors: plan, agreement, and judgments as files."""
