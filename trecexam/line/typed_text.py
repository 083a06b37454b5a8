"""Texts that people type into a track: names, reasons, items. Others read these in files."""

from __future__ import annotations

from converters.errors import CONTROLS
from trecexam.errors import TrecexamError

#: The most characters of a name, a reason, a note, an item's text.
MAX_WHO, MAX_WHY, MAX_NOTE, MAX_ITEM = 200, 500, 2_000, 2_000


def typed(what: str, text: str, most: int) -> str:
    """Return the text with single blanks for white space and line ends.

    Args:
        what: the name of the text, for the message.

    Raises:
        TrecexamError: it has a control character (C0, C1, one for the direction of writing), or more than
            `most` characters.
    """
    line = " ".join(text.split())
    refuse_controls(what, text.translate(dict.fromkeys(b"\t\n\r", " ")))
    if len(line) > most:
        raise TrecexamError(f"{what} has {len(line):,} characters, and may have {most:,}: shorten it")
    return line


def refuse_controls(what: str, text: str) -> None:
    """Refuse characters that are invisible in a file or change the order of what is displayed.

    Raises:
        TrecexamError: there is such a character.
    """
    control = CONTROLS.search(text) or ("\n" if "\n" in text else None)
    if control:
        raise TrecexamError(
            f"a control character, U+{ord(control[0]):04X}, in {text[:40]!a}: {what} must not have any"
        )
