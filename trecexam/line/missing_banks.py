"""Test banks that an update writes where there are none: `write_bank` of [graders.NAME]; and their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.errors import LockedError, TrackError, TrecexamError, quoted
from trecexam.extension import extensions, named
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.line.grading import Progress
from trecexam.line.input_files import read_bank_file
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.shared_inputs import SharedInputs
from trecexam.line.track_graders import declared_kind, folder_of
from trecexam.tables.text import plural

T = TypeVar("T")
#: What a progress bar counts.
PROMPTS = "prompts of its bank"


class WrittenBank(NamedTuple):
    """What came of writing a bank.

    Attributes:
        path: of its file, which is written when every query is through, and not before.
        items, queries: how many it has, and of how many queries.
        failures: a line for each query that has got no items, or not all.
        why: what ended it early; "" where it came to its end.
    """

    path: Path
    items: int
    queries: int
    failures: tuple[str, ...]
    why: str


class BanksWritten(NamedTuple):
    """What came of all banks that were missing.

    Attributes:
        notes: what was written, and which queries have nothing in it, one per line.
        errors: grader -> why it has no bank still.
    """

    notes: tuple[str, ...]
    errors: Mapping[str, TrecexamError | ConversionError]


@cache
def _bank_writer() -> Any:
    """Return what has banks written, as `WRITER` of the extension banks; TrackError where nothing does."""
    at = next((each.bank_writer for each in extensions() if each.bank_writer is not None), None)
    if at is None:
        raise TrackError("`write_bank` is set, but no installed extension writes test banks")
    return named(at)


def lacks_bank(folder: TrackFolder, shared: SharedInputs) -> bool:
    """Whether a grader's bank is to be written: its section says how, and there is nothing to ask about.

    A file that a person gave, or edited, is a bank as soon as it has one item, be it retired: it is never
    written over, nor is anything added.
    """
    if folder.write_bank is None:
        return False
    kind = declared_kind(folder)
    kinds = frozenset[str]() if kind is None else kind.item_kinds
    return not any(
        item.kind in kinds
        for path in folder.bank(optional=True)
        if path.stat().st_size
        for item in shared.files.get("bank", path, read_bank_file)[0]
    )


def write_missing_banks(
    loaders: TrackLoaders,
    names: Iterable[str],
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    hold: Collection[Path] = (),
    doing: Callable[[str], None] = lambda stage: None,
) -> BanksWritten:
    """Writes the banks of those graders that have none and say how; the others' are as they are.

    Args:
        names: of the graders that are meant.
        progress: is told how many prompts are answered.
        hold: run files that are being written now: what nuggets are made from may be among them, so that
            nothing is written meanwhile.
        doing: called before a bank is written, in words that follow "finishing".
    """
    notes: list[str] = []
    errors: dict[str, TrecexamError | ConversionError] = {}
    for name in names:
        if hold or (stop is not None and stop()):
            break

        def named_progress(done: int, total: int, name: str = name) -> None:
            if progress is not None:
                progress(Progress(done, total, name, PROMPTS))

        try:
            folder = folder_of(loaders.folder, name)
            if not lacks_bank(folder, loaders.shared):
                continue
            if not folder.config.has_writer:
                raise folder.no_bank_yet()
            doing("the test banks")
            made: WrittenBank = _bank_writer().write(folder, named_progress, stop, loaders.spent_by_graders)
        except LockedError as error:
            errors[name] = TrecexamError(error.reason, path=error.path)
        except (TrecexamError, ConversionError) as error:
            errors[name] = error
        else:
            if made.why and stop is not None and stop():
                break
            if made.why or not made.items:
                errors[name] = _unwritten(folder, made)
                continue
            of = f"{plural(made.items, 'item')} of {plural(made.queries, 'query')}"
            notes.append(f"{name}: {folder.shown(made.path)} is written, {of}; edit it in any editor")
            notes += (f"{name}: {failure}" for failure in made.failures)
    return BanksWritten(tuple(notes), errors)


def _unwritten(folder: TrackFolder, made: WrittenBank) -> TrecexamError:
    """Why there is no bank, and what to do."""
    target = folder.shown(made.path)
    if made.why:
        return TrackError(
            f"{target} is not written yet: {made.why}; what was answered is kept, and `trecexam watch "
            f"{quoted(folder.root)}` continues with it",
            path=folder.root,
        )
    first = made.failures[0] if made.failures else "there are no queries"
    return TrackError(f"{target} is not written: no query got an item: {first}", path=folder.root)


def estimate_missing_banks(loaders: TrackLoaders, names: Iterable[str]) -> dict[str, Estimate]:
    """Grader -> what writing its bank would take, of those that have none and could have it written."""
    return _of_missing_banks(loaders, names, lambda folder: _bank_writer().estimate(folder))


def forget_unread_answers(loaders: TrackLoaders, names: Iterable[str]) -> int:
    """Drops stored answers for missing banks that cannot be read; returns how many."""
    return sum(
        _of_missing_banks(loaders, names, lambda folder: _bank_writer().forget_unread(folder)).values()
    )


def _of_missing_banks(
    loaders: TrackLoaders, names: Iterable[str], call: Callable[[TrackFolder], T]
) -> dict[str, T]:
    """Return what `call` returns by grader, of those whose bank is missing and can be written."""
    results: dict[str, T] = {}
    for name in names:
        # Why one cannot go on, an update says.
        with suppress(TrecexamError, ConversionError):
            folder = folder_of(loaders.folder, name)
            if lacks_bank(folder, loaders.shared) and folder.config.has_writer:
                results[name] = call(folder)
    return results


def read_target(folder: TrackFolder, target: Path) -> bytes:
    """What the file holds now, b"" where there is none. Read it before the bank, for `check_unchanged`."""
    if not folder.takes_as_bank(target):
        patterns = folder.config.track.bank
        hint = (
            f"name it in `bank` of [{folder.section_of('bank', 'track')}], which has {', '.join(patterns)}"
            if patterns
            else "give -o a name such as bank.mine.jsonl in the track's folder"
        )
        raise TrecexamError(f"would not be a file of this track's bank: {hint}", path=target)
    if target.suffix == ".gz":
        raise TrecexamError("is compressed, and could not be edited: give -o another name", path=target)
    with suppress(OSError), open_input(target) as file:
        return file.read()
    return b""


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a file, with their ends."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def check_unchanged(target: Path, content: bytes) -> None:
    """Refuses to write to a file that does not hold what it did."""
    if (target.read_bytes() if target.exists() else b"") != content:
        raise TrecexamError(
            "was edited while the model was asked, and is left unchanged; start again: the answers are kept "
            "and each prompt is sent once",
            path=target,
        )
