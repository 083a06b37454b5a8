"""The command line: thin, one module per group of commands, each imported when it is called."""

from trecexam.cli.main import main

__all__ = ["main"]
