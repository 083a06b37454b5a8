"""Test banks that an update writes if there are none: `write_bank` of [graders.NAME]; and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.errors import LockedError, TrackError, TrecexamError, quoted
from trecexam.extension import provided
from trecexam.files.cache import FileCache
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import Job, SpentByGraders
from trecexam.inputs.inputs import read_bank_file
from trecexam.inputs.track_graders import declared_kind, folder_of
from trecexam.results.text import plural


class BanksWritten(NamedTuple):
    """Lines on what was written, and on queries without items; and why graders still have no bank."""

    notes: tuple[str, ...]
    errors: Mapping[str, TrecexamError | ConversionError]


def lacks_bank(folder: TrackFolder, files: FileCache) -> bool:
    """Return True for a grader whose bank is to be written: it has `write_bank`, and no item to grade.

    A file with one item, even a retired one, is a person's: it is never written over or added to.

    Raises:
        ConversionError: a file of the bank cannot be read.
    """
    if folder.write_bank is None:
        return False
    kind = declared_kind(folder)
    kinds = frozenset[str]() if kind is None else kind.item_kinds
    paths = [path for path in folder.bank(optional=True) if path.stat().st_size]
    items = (item for path in paths for item in files.get("bank", path, read_bank_file)[0])
    return not any(item.kind in kinds for item in items)


def write_missing_banks(
    track: TrackFolder,
    files: FileCache,
    names: Iterable[str],
    progress: Callable[[str, int, int], None],
    stop: Callable[[], bool],
    doing: Callable[[str], None],
    spent_by_graders: SpentByGraders,
) -> BanksWritten:
    """Write the missing banks of these graders.

    Args:
        progress: called with the grader, the number of answered prompts, and of all.
        doing: called before a bank is written, in words that follow "finishing".
        spent_by_graders: as of `Job.ask`.
    """
    notes: list[str] = []
    errors: dict[str, TrecexamError | ConversionError] = {}
    for name in names:
        if stop():
            break
        try:
            folder = folder_of(track, name)
            if not lacks_bank(folder, files):
                continue
            if not folder.config.has_writer:
                raise folder.no_bank_yet()
            doing("the test banks")
            with _lock(folder):
                made = _job(folder, whole=True).ask(partial(progress, name), stop, spent_by_graders)
            if made.why and stop():
                break
            target = folder.shown(made.output)
            failures = [f"query {request}: {reason}" for request, reason in made.failures]
            if made.why:
                reason = (
                    f"{target} is not written yet: {made.why}; what was answered is kept, and `trecexam "
                    f"watch {quoted(folder.root)}` continues with it"
                )
                raise TrackError(reason, path=folder.root)
            if not made.items:
                first = failures[0] if failures else "there are no queries"
                reason = f"{target} is not written: no query got an item: {first}"
                raise TrackError(reason, path=folder.root)
            of = f"{plural(made.items, 'item')} of {plural(made.queries, 'query')}"
            notes.append(f"{name}: {target} is written, {of}; edit it in any editor")
            notes += (f"{name}: {failure}" for failure in failures)
        except LockedError as error:
            errors[name] = TrecexamError(error.reason, path=error.path)
        except (TrecexamError, ConversionError) as error:
            errors[name] = error
    return BanksWritten(tuple(notes), errors)


def estimate_missing_banks(track: TrackFolder, files: FileCache, names: Iterable[str]) -> dict[str, Estimate]:
    """Return what writing the missing banks would take, by grader; asks nobody."""
    estimates = {}
    for name, folder in _missing(track, files, names):
        with suppress(TrecexamError, ConversionError):
            estimates[name] = _job(folder).estimate()
    return estimates


def forget_unread_answers(track: TrackFolder, files: FileCache, names: Iterable[str]) -> int:
    """Drop stored answers for missing banks that cannot be read, and return their number."""
    n_forgotten = 0
    for _, folder in _missing(track, files, names):
        with suppress(TrecexamError, ConversionError), _lock(folder):
            n_forgotten += _job(folder, again=True, forget_in_file=True).n_forgotten
    return n_forgotten


def _missing(track: TrackFolder, files: FileCache, names: Iterable[str]) -> Iterator[tuple[str, TrackFolder]]:
    """Yield the graders whose bank is missing and can be written."""
    for name in names:
        # An update names the reason where a grader cannot go on.
        with suppress(TrecexamError, ConversionError):
            folder = folder_of(track, name)
            if lacks_bank(folder, files) and folder.config.has_writer:
                yield name, folder


def _job(folder: TrackFolder, **options: bool) -> Job[Any]:
    """Return the prompts of a missing bank, as `bank generate` sends them."""
    job: Job[Any] = provided("bank_writer")([folder], **options)
    return job


def _lock(folder: TrackFolder) -> AbstractContextManager[None]:
    return track_lock(folder.writing_lock_path, "calling this track's model")


def read_target(folder: TrackFolder, target: Path) -> bytes:
    """Read a file of the bank, b"" where there is none, or raise a TrecexamError; see `check_unchanged`."""
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
    """Split a file into lines, with their ends."""
    return BytesIO(content).readlines()


def check_unchanged(target: Path, content: bytes) -> None:
    """Refuse to write to a file that somebody changed since `read_target` gave this content."""
    if (target.read_bytes() if target.exists() else b"") != content:
        raise TrecexamError(
            "was edited while the model was asked, and is left unchanged; start again: the answers are kept "
            "and each prompt is sent once",
            path=target,
        )
