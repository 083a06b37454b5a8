"""The command line: one thin module per group of commands, imported on demand."""

from trecexam.cli.main import main

__all__ = ["main"]
