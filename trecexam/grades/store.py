"""The grade store: every answer a grader ever gave, in one SQLite file.

A grade's key is (grader identity, item digest, passage digest), so equal passages are graded once
whatever their ids, and going back to an earlier setting finds its grades again. One batch is one
transaction; `kill -9` loses at most the batch in flight.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
#: Stands for the stamp of a file that is not there.
_NO_FILE = Stamp(0, 0, 0, 0)
#: From so many rows on, a table is read from end to end in place of row after row.
_MANY = 2000
#: And only where this share of it is wanted: a store has the passages of years.
_SHARE = 0.1
#: A grade as one number: the rating, or what its status is where there is none.
_CODE = (
    "coalesce(rating, CASE status WHEN 'unparsed' THEN -2 WHEN 'refused' THEN -3 WHEN 'error' THEN -4 END, "
    "-128)"
)
#: All that a code can be, and a status.
_CODES, _STATUSES = (-4, -3, -2, 0, 1, 2, 3, 4, 5), ("ok", "unparsed", "refused", "error")
#: Columns of grades that are read in bulk, their types, and the number of items of one query.
_NUMBERS = [("item", np.int64), ("passage", np.int64), ("code", np.int8)]
_ANSWERS = [*_NUMBERS, ("cut_at", np.int64), ("answer", np.object_)]
_ITEMS = 4096
#: Columns of a `GradeRow`.
_WHOLE = "item_id, passage_id, rating, status, answer, probabilities, cut_at"


class GradeRow(NamedTuple):
    """A stored grade. `rating` is 0..5 when `status` is "ok", else None; `cut_at` as in `Answer`."""

    item_id: int
    passage_id: int
    rating: int | None
    status: str
    answer: str
    probabilities: tuple[float, ...] | None = None
    cut_at: int | None = None


class GradeColumns(NamedTuple):
    """A grader's grades on some items, sorted by key: columns of the same length.

    Attributes:
        keys: item << 32 | passage, see `Sheet.keys`.
        codes: the ratings 0..5, or -2 unparsed, -3 refused, -4 error.
        answers: raw answers, by dictionary; None if not requested.
        cut_at: the limits that ended answers, 0 for none.
    """

    keys: NDArray[np.int64]
    codes: NDArray[np.int8]
    answers: Any = None
    cut_at: NDArray[np.int64] = np.empty(0, np.int64)

    @classmethod
    def parse(cls, rows: NDArray[np.void]) -> GradeColumns:
        """Parse rows of the type `_NUMBERS` or `_ANSWERS`.

        Raises:
            ValueError: they were never stored so.
        """
        items, passages, codes = rows["item"], rows["passage"], rows["code"]
        if len(rows):
            if min(items.min(), passages.min()) < 1 or max(items.max(), passages.max()) >= 2**31:
                raise ValueError("rows that are none")
            if not np.isin(codes, _CODES).all():
                raise ValueError("codes that are none")
        keys = items << 32 | passages
        in_order = np.argsort(keys, kind="stable")
        if rows.dtype == _NUMBERS:
            return cls(keys[in_order], codes[in_order])
        # Models say the same few things again and again.
        answers = pa.array(rows["answer"][in_order], pa.string()).dictionary_encode()
        if answers.null_count:
            raise ValueError("answers that are none")
        return cls(keys[in_order], codes[in_order], answers, rows["cut_at"][in_order])

    def places(self, keys: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return where each of these keys is; -1 where it is not."""
        if not len(self.keys):
            return np.full(keys.shape, -1)
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        return np.where(self.keys[at] == keys, at, -1)


def _grade_row(row: tuple[int, int, int | None, str, str, str | None, int | None]) -> GradeRow:
    item, passage, rating, status, answer, stored, cut_at = row
    probabilities = None if stored is None else tuple(map(float, json.loads(stored)))
    rated = rating in range(6) if status == "ok" else rating is None
    if not rated or status not in _STATUSES or not isinstance(answer, str):
        raise ValueError("a grade that is none")
    if cut_at is not None and type(cut_at) is not int:
        raise ValueError("a limit that is none")
    return GradeRow(item, passage, rating, status, answer, probabilities, cut_at)


def _details(stored: str) -> Mapping[str, str]:
    details = json.loads(stored)
    if not isinstance(details, dict) or not all(isinstance(value, str) for value in details.values()):
        raise ValueError("an environment that is none")
    return details


class GradeStore:
    """The grades of one track. One process writes at a time; any number may read meanwhile.

    The ids it hands out (grader, item, passage) are row numbers of this file and of nothing else.

    A grader that never graded here has the id None, and no grades.

    Raises (all methods):
        StoreError: the file is no store, is newer than this program, cannot be written, or the disk is full.
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
        #: Grader -> how often its grades were changed by this object.
        self.n_changes: Counter[int | None] = Counter()
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

    def settle(self) -> None:
        """Move the last grades from the WAL into the file, where nobody reads it right now."""
        with self._errors():
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute(f"PRAGMA busy_timeout = {round(1000 * self._patience)}")

    def at_rest(self) -> Stamp | None:
        """Return the file's stamp, or None while the last grades are in its WAL."""
        wal = self.path.with_name(f"{self.path.name}-wal")
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
        """Explain errors as `_errors`; stored values that cannot be parsed are damage."""
        try:
            with self._errors():
                yield
        except _NOT_AS_STORED as error:
            raise self._damaged(f"what is stored cannot be read ({type(error).__name__})") from error

    def grader_id(self, digest: bytes) -> int | None:
        """Return the row of a grader identity, or None where it never graded."""
        return self.ids("grader", [digest])[0]

    def add_grader(self, digest: bytes, identity: str) -> int:
        """Return the row of a grader identity, made where it is new. `identity` is its canonical JSON."""
        with self._transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO grader (digest, identity) VALUES (?, ?)", (digest, identity)
            )
        grader_id = self.grader_id(digest)
        assert grader_id is not None
        return grader_id

    def ids(self, table: str, keys: Sequence[bytes | str], column: str = "digest") -> list[int | None]:
        """Return the rows of these keys in a table ("item", "passage" ...); None for new ones."""
        query = f"SELECT id FROM {table} WHERE {column} = ?"
        with self._reading():
            last: int = self._db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
            if len(keys) > max(_MANY, _SHARE * last):
                rows = dict(self._db.execute(f"SELECT {column}, id FROM {table}").fetchall())
                return [rows.get(key) for key in keys]
            found = (self._db.execute(query, (key,)).fetchone() for key in keys)
            return [None if row is None else int(row[0]) for row in found]

    def add_ids(self, table: str, keys: Sequence[bytes | str], column: str = "digest") -> list[int]:
        """Return the rows as `ids`; rows are made for new ones."""
        new = [(key,) for key, row in zip(keys, self.ids(table, keys, column), strict=True) if row is None]
        if new:
            with self._transaction():
                self._db.executemany(f"INSERT OR IGNORE INTO {table} ({column}) VALUES (?)", new)
        return [row for row in self.ids(table, keys, column) if row is not None]

    def n_environments(self) -> int:
        """Return how many environments answers of all graders were made on, as far as that is known."""
        with self._reading():
            return int(self._db.execute("SELECT count(*) FROM environment").fetchone()[0])

    def environments(self, grader_id: int | None) -> list[tuple[Mapping[str, str] | None, int]]:
        """Return what this grader's answers were made on (None: not known), and how many, the most first."""
        if grader_id is None or not self.n_environments():
            count = 0 if grader_id is None else self.count(grader_id)
            return [(None, count)] if count else []
        query = (
            "SELECT details, n FROM (SELECT environment_id, count(*) AS n FROM grade WHERE grader_id = ? "
            "GROUP BY environment_id) LEFT JOIN environment ON id = environment_id ORDER BY n DESC, id"
        )
        with self._reading():
            rows = self._db.execute(query, (grader_id,)).fetchall()
            return [(None if details is None else _details(details), n) for details, n in rows]

    def add(
        self, grader_id: int, rows: Iterable[GradeRow], environment: Mapping[str, str] | None = None
    ) -> None:
        """Store a batch in one transaction; a cell that has a grade gets the new one.

        Args:
            environment: what the answers were made on, see `Grader`.
        """
        environment_id = None
        if environment is not None:
            text = json.dumps(environment, sort_keys=True, ensure_ascii=False)
            (environment_id,) = self.add_ids("environment", [text], "details")
        values = [
            (grader_id, *row, None if chances is None else json.dumps(chances), environment_id, cut_at)
            for *row, chances, cut_at in rows
        ]
        self.n_changes[grader_id] += 1
        with self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO grade VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def add_usage(self, grader_id: int, used: tuple[int, int, int], purse: str) -> None:
        """Add (requests, tokens in, tokens out) to what this grader used so far of this purse."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO paid VALUES (?, ?, ?, ?, ?) ON CONFLICT (grader_id, purse) DO UPDATE SET "
                "requests = requests + excluded.requests, tokens_in = tokens_in + excluded.tokens_in, "
                "tokens_out = tokens_out + excluded.tokens_out",
                (grader_id, purse, *used),
            )

    def usage(self, digest: bytes) -> tuple[int, int, int]:
        """Return (requests, tokens in, tokens out) that the grader with this digest used so far."""
        return self._used("grader_id = ?", self.grader_id(digest))

    def paid(self, purse: str, without: Collection[bytes] = ()) -> tuple[int, int, int]:
        """Return (requests, tokens in, tokens out) paid from a purse, but for graders with these digests."""
        excluded_ids = f"SELECT id FROM grader WHERE digest IN ({', '.join('?' * len(without))})"
        return self._used(f"purse = ? AND grader_id NOT IN ({excluded_ids})", purse, *without)

    def _used(self, which: str, *values: object) -> tuple[int, int, int]:
        query = f"SELECT sum(requests), sum(tokens_in), sum(tokens_out) FROM paid WHERE {which}"
        with self._reading():
            requests, tokens_in, tokens_out = self._db.execute(query, values).fetchone()
            return int(requests or 0), int(tokens_in or 0), int(tokens_out or 0)

    def forget(self, grader_id: int | None, keys: Iterable[int]) -> None:
        """Drop this grader's grades with these keys, see `GradeColumns`."""
        self.n_changes[grader_id] += 1
        with self._transaction():
            self._db.executemany(
                "DELETE FROM grade WHERE grader_id = ? AND item_id = ? AND passage_id = ?",
                ((grader_id, *divmod(key, 2**32)) for key in keys),
            )

    def columns(
        self,
        grader_id: int | None,
        item_ids: Iterable[int],
        passage_ids: tuple[int, int] = (0, 2**31),
        *,
        answers: bool = False,
    ) -> GradeColumns:
        """Return this grader's grades on these items, and maybe on some others.

        Args:
            passage_ids: the first and the last passage.
            answers: also read raw answers, and the limits that ended them.
        """
        ids, dtype = sorted(set(item_ids)), np.dtype(_ANSWERS if answers else _NUMBERS)
        names = f"item_id, passage_id, {_CODE}{', coalesce(cut_at, 0), answer' if answers else ''}"
        parts = [np.empty(0, dtype)]
        for start in range(0, len(ids), _ITEMS):
            part = ids[start : start + _ITEMS]
            which = f"item_id IN ({', '.join('?' * len(part))}) AND passage_id BETWEEN ? AND ?"
            query = f"SELECT {names} FROM grade WHERE grader_id = ? AND {which}"
            with self._reading():
                rows = self._db.execute(query, (grader_id, *part, *passage_ids))
                parts.append(np.fromiter(rows, dtype))
        with self._reading():
            return GradeColumns.parse(np.concatenate(parts))

    def answers(self, grader_id: int | None, item_id: int) -> Mapping[int, GradeRow]:
        """Return passage id -> the whole grade, raw answer too, of every grade on this item."""
        with self._reading():
            rows = self._db.execute(
                f"SELECT {_WHOLE} FROM grade WHERE grader_id = ? AND item_id = ?", (grader_id, item_id)
            )
            return {row[1]: _grade_row(row) for row in rows}

    def everything(self) -> Iterator[tuple[str, str, str, str, GradeRow]]:
        """Yield every answer by its source: identity and environment (JSON), sha256 of passage and item."""
        query = (
            "SELECT identity, coalesce(details, 'null'), hex(passage.digest), hex(item.digest), item_id, "
            "passage_id, rating, status, answer, probabilities, cut_at FROM grade "
            "JOIN grader ON grader.id = grader_id JOIN passage ON passage.id = passage_id "
            "JOIN item ON item.id = item_id LEFT JOIN environment ON environment.id = environment_id "
            "ORDER BY 1, 2, 3, 4"
        )
        with self._reading():
            for identity, environment, passage, item, *row in self._db.execute(query):
                yield identity, environment, passage.lower(), item.lower(), _grade_row(tuple(row))

    def cut_keys(self, grader_id: int | None) -> NDArray[np.int64]:
        """Return the keys, as of `GradeColumns`, of this grader's answers that a limit ended."""
        query = "SELECT item_id, passage_id FROM grade WHERE grader_id = ? AND cut_at > 0"
        with self._reading():
            cells = self._db.execute(query, (grader_id,))
            return np.array([item << 32 | passage for item, passage in cells], np.int64)

    def has_probabilities(self, grader_id: int | None) -> bool:
        """Return True where this grader gave probabilities with any of its grades."""
        query = "SELECT 1 FROM grade WHERE grader_id = ? AND probabilities IS NOT NULL LIMIT 1"
        with self._reading():
            return self._db.execute(query, (grader_id,)).fetchone() is not None

    def count(self, grader_id: int | None = None) -> int:
        """Return how many grades are stored, by one grader or in all."""
        where, values = ("", ()) if grader_id is None else ("WHERE grader_id = ?", (grader_id,))
        with self._reading():
            return int(self._db.execute(f"SELECT count(*) FROM grade {where}", values).fetchone()[0])
