"""Texts that people type into a track, which others look at: names, reasons; and ids that look alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from converters.errors import CONTROLS
from trecexam.errors import TrecexamError

#: The most characters of a name, a reason, a note, an item's text.
MAX_WHO, MAX_WHY, MAX_NOTE, MAX_ITEM = 200, 500, 2_000, 2_000
#: Unicode normal forms, in which ids that look alike may differ: "ü" is one character in NFC, two in NFD.
_FORMS: tuple[Literal["NFC"], Literal["NFD"]] = ("NFC", "NFD")


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
    """Refuse characters that are invisible in a file or change the order of what is displayed."""
    control = CONTROLS.search(text) or ("\n" if "\n" in text else None)
    if control:
        raise TrecexamError(
            f"a control character, U+{ord(control[0]):04X}, in {text[:40]!a}: {what} must not have any"
        )


def other_forms(ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (id, the same id in another normal form)."""
    for each in ids:
        if not each.isascii():
            forms = {unicodedata.normalize(form, each) for form in _FORMS}
            yield from ((each, other) for other in sorted(forms - {each}))


def differing_in_form(ids: Iterable[str], known: Collection[str]) -> str:
    """Say which ids differ from known ones in their Unicode normal form alone, and what to do; "" of none."""
    alike = dict.fromkeys(each for each, other in other_forms(ids) if other in known)
    if not alike:
        return ""
    ids_differ = f"{len(alike):,} ids differ" if len(alike) > 1 else "1 id differs"
    return (
        f"; {ids_differ} from other files' in Unicode normal form alone, '{next(iter(alike))}' here; write "
        "all in one: uconv -x any-nfc FILE"
    )
