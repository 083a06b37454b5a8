"""Keeps out/history: an entry for each update that changed the leaderboard, its labels or its items.

Before the outputs are replaced, three files are written, each atomically and in this order:

1. `out/history/NNNNNN.json`, the entry;
2. `.trecexam/history.json.gz`, what the next entry is compared with. Now the entry counts;
3. `out/history/log.tsv`, the rows of the entries that it lacks.

A process killed after 1 finds its entry again by the digests of what was before and after; one killed after
2 has its rows added by the next update. So each change is logged once, and nothing that counts is lost.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.errors import TrecexamError
from trecexam.features.history.changes import LeaderboardSnapshot, board_change
from trecexam.features.history.entry import (
    LOG_COLUMNS,
    Entry,
    HistoryLog,
    LogRow,
    log_rows,
    log_table,
)
from trecexam.features.history.snapshot import cause, changed_files, changed_values, origin_of, snapshot_of
from trecexam.files import atomic as files
from trecexam.files.kept import read_kept, read_regular, write_kept
from trecexam.files.stamps import stamp
from trecexam.line.loaded_track import of_one_grader
from trecexam.tables.table import to_json, to_tsv
from trecexam.tables.terminal import printable
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

#: Of the file in .trecexam; another version's is as good as none.
_FORMAT = 2
#: What is kept in the process, so that megabytes need not be read at each update.
_KEPT = "the history's last entry"


@dataclass(frozen=True)
class _Logged:
    """What the last entry that counts led to: its number, the leaderboard and its digest, and what that was
    made from, see `origin_of`.
    """

    entry: int
    key: str
    snapshot: LeaderboardSnapshot
    files: dict[str, str]
    values: dict[str, Any]


class Noted(NamedTuple):
    """What `History.note` took down.

    Attributes:
        entry: the number of the entry; None where nothing changed.
        logged: what is to be remembered; None where there is nothing.
        fresh: the entry by its number, for the log.
    """

    entry: int | None
    logged: _Logged | None
    fresh: Mapping[int, Entry]


class History:
    """The history of a track."""

    def __init__(self, folder: TrackFolder) -> None:
        self.folder = folder.out / "history"
        self.log_path = self.folder / "log.tsv"
        self._state = folder.state / "history.json.gz"

    def note(self, track: Assessment) -> Noted:
        """Takes down what changed since the last entry. `finish` must follow.

        Args:
            track: with all its cells asked for; what a stopped update leaves is nobody's leaderboard.

        Raises:
            TrecexamError: it cannot be written.
        """
        for folder in (self.folder, self._state.parent):
            files.sweep(folder)
        snapshot, origin = snapshot_of(track), origin_of(track)
        key = hashlib.sha256(_adapter(LeaderboardSnapshot).dump_json(snapshot)).hexdigest()
        logged = track.cache.get(_KEPT, stamp(self._state), self._logged)
        log_ends_at, latest = self._log()[1], max(self.numbers(), default=0)
        if not log_ends_at and not latest:
            # The folder is new, or was removed: it starts again.
            logged = None
            if not snapshot.runs:
                return Noted(None, None, {})
        counted = max(log_ends_at, logged.entry if logged else 0)
        previous = logged if logged is not None and logged.entry == counted else None
        if previous is None and self._leads_to(counted, key):
            # What is kept was lost, and nothing changed since.
            previous = _Logged(counted, key, snapshot, *origin)
        number = counted + 1 if latest <= counted + 1 else latest + 1
        now = _Logged(number, key, snapshot, *origin)
        entry = _entry(previous, now, track)
        if entry.board.empty and previous is not None:
            return Noted(None, replace(now, entry=previous.entry), {})
        if not self._is_there(entry):
            content = to_json(_adapter(Entry).dump_python(entry, mode="json")).encode()
            files.replace(self._path(number), content, into_special=False)
        return Noted(number, now, {number: entry})

    def finish(self, noted: Noted, track: Assessment) -> None:
        """Remembers where the leaderboard stands now, and adds the entry to the log.

        It may be left to the end of an update: where a process is killed before, the next one makes the same
        entry again.

        Raises:
            TrecexamError: it cannot be written.
        """
        if noted.logged is None:
            return
        logged = noted.logged
        write_kept(self._state, gzip.compress(_adapter(_Logged).dump_json(logged), 1, mtime=0), _FORMAT)
        track.cache.get(_KEPT, stamp(self._state), lambda: logged)
        self._add_to_log(noted.fresh)

    def numbers(self) -> list[int]:
        """The numbers of the entries that are there, in order."""
        names = (path.stem for path in self.folder.glob("[0-9]*.json"))
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def entry(self, number: int | None) -> Entry:
        """An entry; None for the last.

        Raises:
            TrecexamError: there is no such entry, or it cannot be read.
        """
        if number is None:
            number = max(self.numbers(), default=1)
        path = self._path(number)
        try:
            content = read_regular(path)
        except FileNotFoundError:
            numbers = self.numbers()
            what = (
                f"there are {numbers[0]} to {numbers[-1]}"
                if numbers
                else "`trecexam watch` makes the first one"
            )
            raise TrecexamError(f"no entry {number}: {what}", path=self.folder) from None
        except OSError as error:
            raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
        try:
            entry: Entry = _adapter(Entry).validate_json(content)
        except ValueError:
            raise TrecexamError("is damaged, or of another version of trecexam", path=path) from None
        return entry

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.json"

    def _is_there(self, entry: Entry) -> bool:
        """Whether a process that was killed had written this very entry."""
        with contextlib.suppress(TrecexamError):
            stored_entry = self.entry(entry.entry)
            return (stored_entry.before, stored_entry.after) == (entry.before, entry.after)
        return False

    def _leads_to(self, number: int, key: str) -> bool:
        """Whether this entry is there and led to where the leaderboard stands now."""
        with contextlib.suppress(TrecexamError):
            return self.entry(number).after == key
        return False

    def _logged(self) -> _Logged | None:
        """What the last entry led to; None where that is missing, damaged or of another version."""
        content = read_kept(self._state, _FORMAT)
        if content is None:
            return None
        logged: _Logged = _adapter(_Logged).validate_json(gzip.decompress(content))
        return logged

    def _log(self) -> tuple[str, int]:
        """The text of log.tsv and the number of its last entry; "" and 0 where it is none that continues."""
        with contextlib.suppress(OSError, ValueError):
            text = read_regular(self.log_path).decode()
            if text.startswith("\t".join(LOG_COLUMNS) + "\n") and text.endswith("\n"):
                return text, int(text.rsplit("\n", 2)[-2].split("\t", 1)[0])
        return "", 0

    def _add_to_log(self, fresh: Mapping[int, Entry]) -> None:
        """Adds to log.tsv the rows of the entries that it lacks."""
        text, last = self._log()
        rows: list[LogRow] = []
        for number in self.numbers():
            if number > last:
                # One that is damaged is no reason to stop.
                with contextlib.suppress(TrecexamError):
                    rows += log_rows(fresh[number] if number in fresh else self.entry(number))
        added = to_tsv(log_table(rows))
        if rows:
            content = (text + added.split("\n", 1)[1] if text else added).encode()
            files.replace(self.log_path, content, into_special=False)


def _entry(previous: _Logged | None, now: _Logged, track: Assessment) -> Entry:
    """What changed from the last entry to now."""
    depth = track.config.track.depth
    runs = {printable(name): run for name, run in track.runs.items()}
    board = board_change(
        previous.snapshot if previous else None,
        now.snapshot,
        lambda run, query_id: runs[run].ranking(query_id, depth),
        depth,
    )
    when = datetime.now(UTC).isoformat(timespec="seconds")
    if previous is None:
        why = (
            "the first leaderboard"
            if now.entry == 1
            else "what was before could not be read: all runs are listed as new"
        )
        return Entry(now.entry, when, why, {}, {}, board, None, now.key)
    touched = changed_files(previous.files, now.files)
    values = changed_values(previous.values, now.values)
    return Entry(now.entry, when, cause(touched, values), touched, values, board, previous.key, now.key)


@of_one_grader(lambda folder: bool(History(folder).numbers()))
def history(folder: TrackFolder) -> HistoryLog:
    """Which runs moved at each change of the leaderboard, and why; notes name entries that cannot be read."""
    log = History(folder)
    rows: list[LogRow] = []
    notes: list[str] = []
    for number in log.numbers():
        try:
            rows += log_rows(log.entry(number))
        except TrecexamError as error:
            notes.append(str(error))
    if not rows and not notes:
        notes.append(f"no history yet: `trecexam watch {folder.root}` keeps it in {log.folder}")
    return HistoryLog(tuple(rows), tuple(notes))


@of_one_grader(lambda folder: bool(History(folder).numbers()))
def history_entry(folder: TrackFolder, number: int | None = None) -> Entry:
    """All that one change did: files, settings, runs on every measure, items and labels.

    Args:
        number: None for the last.

    Raises:
        TrecexamError: there is no such entry, or it cannot be read.
    """
    return History(folder).entry(number)


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
