"""The SQLite file behind the grade store: opened, made, written in transactions, its errors explained."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote

from trecexam.errors import StoreError
from trecexam.files.stamps import Stamp, stamp

#: Of the tables below. Stores of any other version are refused.
VERSION = 4
_SCHEMA = """
    CREATE TABLE grader  (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, identity TEXT NOT NULL);
    CREATE TABLE item    (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
    CREATE TABLE passage (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE);
    CREATE TABLE environment (id INTEGER PRIMARY KEY, details TEXT NOT NULL UNIQUE);
    CREATE TABLE grade (
        grader_id  INTEGER NOT NULL REFERENCES grader(id),
        item_id    INTEGER NOT NULL REFERENCES item(id),
        passage_id INTEGER NOT NULL REFERENCES passage(id),
        rating     INTEGER CHECK (rating BETWEEN 0 AND 5),
        status     TEXT NOT NULL CHECK (status IN ('ok', 'unparsed', 'refused', 'error')),
        answer     TEXT NOT NULL,
        probabilities TEXT,
        environment_id INTEGER REFERENCES environment(id),
        cut_at INTEGER,
        PRIMARY KEY (grader_id, item_id, passage_id),
        CHECK ((rating IS NOT NULL) = (status = 'ok'))
    ) WITHOUT ROWID;
    CREATE TABLE paid (
        grader_id  INTEGER NOT NULL REFERENCES grader(id),
        purse      TEXT NOT NULL,
        requests   INTEGER NOT NULL,
        tokens_in  INTEGER NOT NULL,
        tokens_out INTEGER NOT NULL,
        PRIMARY KEY (grader_id, purse)
    );
"""


#: What to do about a damaged store.
REMEDY = "the store may be damaged; restore a copy, or move it away and grade anew (`trecexam watch --once`)"
#: What Python raises of values that are not what was stored.
_NOT_AS_STORED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)


_NO_FILE = Stamp(0, 0, 0, 0)


class StoreConnection:
    """An open store file.

    Raises (all methods):
        StoreError: the file is no store, is another version's, cannot be written, or the disk is full.
    """

    def __init__(self, path: Path, *, write: bool = True, patience: float = 60) -> None:
        """Open the store; make it when it is opened for writing.

        Args:
            write: False never writes to disk: also a store in a folder that may only be read can be read.
            patience: seconds to wait for another process that has the file for itself.
        """
        self.path = path
        self.write = write
        self._patience = patience
        self._is_whole = False
        with self._errors():
            # SQLite waits for ever for who writes into a pipe.
            if path.exists() and not path.is_file():
                raise StoreError(
                    "is a folder, a pipe or a device, not a file: move it away and put the store back",
                    path=path,
                )
            self._db = self._connect()
        self._inode = (stamp(path) or _NO_FILE).inode

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.path.absolute()))}"
        if self.write:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self._open(uri)
        try:
            return self._open(f"{uri}?mode=ro")
        except sqlite3.OperationalError:
            # Beside a WAL, SQLite wants to make a file even to read, unless told that nobody writes.
            return self._open(f"{uri}?immutable=1" if self.path.exists() else ":memory:")

    def _open(self, target: str) -> sqlite3.Connection:
        db = sqlite3.connect(
            target, uri=True, isolation_level=None, timeout=self._patience, check_same_thread=False
        )
        try:
            if self.write:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            if version not in (0, VERSION):
                raise StoreError(
                    f"made by another trecexam (store version {version}, known here: {VERSION}); use "
                    "that, or move the store away and grade anew",
                    path=self.path,
                )
            if version == 0 and "?" in target:
                # It was killed before its tables were made: a store without grades.
                db.close()
                return self._open(":memory:")
            if version == 0:
                # executescript commits what came before, so the transaction is part of the script.
                db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def is_empty(self) -> bool:
        """Return True if no grade was ever stored: forgotten ones leave their grader."""
        with self._errors():
            return self._db.execute("SELECT 1 FROM grader LIMIT 1").fetchone() is None

    def is_replaced(self) -> bool:
        """Return True if the opened file is gone, or another one in its place: what is stored is lost."""
        return (stamp(self.path) or _NO_FILE).inode != self._inode

    def at_rest(self, *, settle: bool = False) -> Stamp | None:
        """Return the file's stamp, or None while the last grades are in its WAL.

        Args:
            settle: move them into the file first, where nobody reads it right now.
        """
        wal = self.path.with_name(f"{self.path.name}-wal")
        if settle and self.write and (stamp(wal) or _NO_FILE).size:
            with self._errors():
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute(f"PRAGMA busy_timeout = {round(1000 * self._patience)}")
        return None if (stamp(wal) or _NO_FILE).size else stamp(self.path)

    def check(self) -> None:
        """Have SQLite look for damage, once: 0.9 seconds where a million grades are stored.

        A value that became another one that might be right is not seen.
        """
        if self._is_whole:
            return
        with self._reading():
            (found,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(str(found))
        self._is_whole = True

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{what}: {REMEDY}", path=self.path)

    def changes(self) -> int:
        """Return another number whenever another connection changed the file since the last call."""
        with self._errors():
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # A full disk may have rolled back already.
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            hint = {
                "database or disk is full": "free some space and start again: nothing stored is lost",
                "file is not a database": "this is not a grade store; move it away and grade anew",
                "attempt to write a readonly database": "make the folder writable",
                "unable to open database file": "make the folder writable",
                "database is locked": "another process holds it; wait or stop that one",
            }.get(str(error), REMEDY)
            raise StoreError(f"{error}: {hint}", path=self.path) from error
        except OSError as error:
            raise StoreError(f"{error.strerror}: make the folder writable", path=self.path) from error

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """As `_errors`, where what is stored is taken apart: what cannot be is damage."""
        try:
            with self._errors():
                yield
        except _NOT_AS_STORED as error:
            raise self._damaged(f"what is stored cannot be read ({type(error).__name__})") from error
