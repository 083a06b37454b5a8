"""The users of a page: a TOML file with names, roles and digests of tokens.

```toml
[[user]]
name = "ada"
role = "assessor"
token_sha256 = "9f86d0..."    # without it a proxy has to name the person
```
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from trecexam.errors import TrecexamError, plain_reason
from trecexam.files import atomic
from trecexam.files.kept import read_regular
from trecexam.files.stamps import stamp
from trecexam.files.track_lock import exclusive_lock

if TYPE_CHECKING:
    from starlette.requests import Request

#: An assessor judges, blind; a reader looks at all and changes nothing; an organizer does all.
Role = Literal["assessor", "organizer", "reader"]
#: The most characters of a name.
LONGEST_NAME = 64
#: Random bytes of a token: nobody guesses 128 bits, so guessing needs no waiting time and locks nobody out.
TOKEN_BYTES = 16
#: Bytes that the file may have: some 100,000 users.
LARGEST_FILE = 2**24
#: The most marks on a letter of a name, as accents and the vowels of many scripts.
MARKS_ON_LETTER = 4
#: What may be in a name: it is a column of files, a cookie's owner, and an argument of commands.
_NAME = re.compile(r"[\w.@+-]+( [\w.@+-]+)*")
#: Marks that nobody sees, so that names with and without one would look the same.
_UNSEEN = re.compile("[\u034f\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_BLOCK = re.compile(r"(?m)^(?=[ \t]*\[\[[ \t]*user[ \t]*\]\])")


class User(NamedTuple):
    """The user of a request. A visitor is not logged in and has no name."""

    name: str
    role: Role | Literal["visitor"]


VISITOR = User("", "visitor")


def user_of(request: Request) -> User | None:
    """The user of a request; None if the page has no users, so that everybody may do everything."""
    user: User | None = request.scope.get("trecexam.user")
    return user


class UserEntry(BaseModel):
    """One `[[user]]` of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    role: Role
    token_sha256: str = ""

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return checked_name(name)

    @field_validator("token_sha256")
    @classmethod
    def _token(cls, token: str) -> str:
        if token and not re.fullmatch("[0-9a-f]{64}", token):
            raise ValueError("is not a sha256 in hex: make one with `trecexam serve-user add --replace`")
        return token

    @property
    def user(self) -> User:
        """The user without the token's digest."""
        return User(self.name, self.role)

    @property
    def logs_in_with(self) -> str:
        """How the user logs in, in words."""
        return "token" if self.token_sha256 else "proxy alone"


def checked_name(name: str) -> str:
    """The name in Unicode's composed form.

    Raises:
        ValueError: it can be no name of a user.
    """
    composed = unicodedata.normalize("NFC", name)
    if not _NAME.fullmatch(_without_marks(composed)) or len(composed) > LONGEST_NAME:
        raise ValueError(
            f"{name!a} cannot be a user's name: use up to {LONGEST_NAME} letters, digits, . _ @ + - and "
            f"blanks"
        )
    return composed


def _without_marks(name: str) -> str:
    """The name without diacritics."""
    cleaned, marks = "", 0
    for sign in name:
        is_mark = unicodedata.category(sign) in {"Mn", "Mc"} and not _UNSEEN.match(sign)
        if is_mark and cleaned[-1:].isalpha() and marks < MARKS_ON_LETTER:
            marks += 1
        else:
            cleaned, marks = cleaned + sign, 0
    return cleaned


class Users:
    """The users in a file, which is read again after a change.

    Args:
        path: None for nobody: then only a proxy names users.
        log: told in a line of a file that cannot be read any more: nobody is known then, until it can, as who
            is to be out may be in it still.

    Attributes:
        trouble: why the file cannot be read; "" where it can.

    Raises:
        TrecexamError: the file cannot be read, or a user in it is not as they must be.
    """

    def __init__(self, path: Path | None, log: Callable[[str], None] = lambda line: None) -> None:
        self._path = path
        self._log = log
        self._stamp = None if path is None else stamp(path)
        self._users: Mapping[str, UserEntry] = {} if path is None else read_users(path)
        self._trouble = ""

    @property
    def trouble(self) -> str:
        self._now()
        return self._trouble

    def get(self, name: str) -> UserEntry | None:
        """The user with this name, ignoring case, from the current file."""
        return self._now().get(name_key(name))

    def named_by_proxy(self, name: str) -> UserEntry | None:
        """The user with exactly this name, not one that only looks alike, because a proxy may know both."""
        entry = self.get(name)
        is_same = entry is not None and (
            entry.name.isascii() == name.isascii()
            and entry.name.lower() == unicodedata.normalize("NFC", name).lower()
        )
        return entry if is_same else None

    def with_token(self, token: str) -> UserEntry | None:
        """The user with this token, or None; takes constant time."""
        token_sha256 = digest(token)
        right = [
            entry
            for entry in self._now().values()
            if hmac.compare_digest(token_sha256, entry.token_sha256 or "-" * len(token_sha256))
        ]
        return right[0] if right else None

    def _now(self) -> Mapping[str, UserEntry]:
        if self._path is not None and (now := stamp(self._path)) != self._stamp:
            self._stamp = now
            try:
                self._users, self._trouble = read_users(self._path), ""
            except TrecexamError as error:
                self._users, self._trouble = {}, str(error)
                self._log(f"{error}; nobody can log in until the file is corrected")
        return self._users


def read_users(path: Path) -> dict[str, UserEntry]:
    """Reads the users of a file, by case-folded name.

    Raises:
        TrecexamError: as `Users`.
    """
    try:
        text = read_regular(path, LARGEST_FILE).decode()
    except FileNotFoundError:
        raise TrecexamError("is not there; make it with `trecexam serve-user add`", path=path) from None
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
    except UnicodeDecodeError:
        raise TrecexamError("is no UTF-8", path=path) from None
    return _parsed(text, path)


def _parsed(text: str, path: Path) -> dict[str, UserEntry]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TrecexamError(f"not valid TOML: {error}", path=path) from None
    except RecursionError:
        raise TrecexamError("not valid: nested too deeply", path=path) from None
    rows = data.pop("user", [])
    if data or not isinstance(rows, list):
        raise TrecexamError("has entries other than [[user]]", path=path)
    users: dict[str, UserEntry] = {}
    for number, row in enumerate(rows, 1):
        try:
            entry = UserEntry.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            # Values are not printed, because one is a hash.
            reason = plain_reason(first)
            raise TrecexamError(
                f"user {number}: {where + ': ' if where else ''}{reason}", path=path
            ) from None
        if name_key(entry.name) in users:
            raise TrecexamError(
                f"user {number}: a second {entry.name!r}; names that differ only in case are the same",
                path=path,
            )
        if entry.token_sha256 and any(entry.token_sha256 == other.token_sha256 for other in users.values()):
            raise TrecexamError(f"user {number}: token_sha256: another user has the same token", path=path)
        users[name_key(entry.name)] = entry
    return users


def add_user(path: Path, name: str, role: Role, *, token: bool = False, replace: bool = False) -> str:
    """Adds a user to a file, which is created with access only for its owner.

    Args:
        token: they log in with a token, which is made. Without one a proxy says who they are.
        replace: in place of the one of that name that is there.

    Returns:
        The token; "" without one.

    Raises:
        TrecexamError: the name can be none or is there already, or the file cannot be read, changed or
            written.
    """
    try:
        name = checked_name(name)
    except ValueError as error:
        raise TrecexamError(str(error)) from None
    made = secrets.token_urlsafe(TOKEN_BYTES) if token else ""
    entry = UserEntry(name=name, role=role, token_sha256=digest(made) if made else "")

    def change(users: dict[str, UserEntry]) -> None:
        before = users.pop(name_key(name), None)
        if before is not None and not replace:
            raise TrecexamError(f"{before.name!r} is there already; --replace replaces it", path=path)
        users[name_key(name)] = entry

    _change(path, change)
    return made


def remove_user(path: Path, name: str) -> None:
    """Removes a user from a file; they are logged out at their next request.

    Raises:
        TrecexamError: nobody has that name, or the file cannot be read, changed or written.
    """

    def change(users: dict[str, UserEntry]) -> None:
        if users.pop(name_key(name), None) is None:
            raise TrecexamError(f"has no user {name!r}; `trecexam serve-user list` names them", path=path)

    _change(path, change)


def _change(path: Path, change: Callable[[dict[str, UserEntry]], None]) -> None:
    """Changes users in a file under its lock, and keeps all other content."""
    real = Path(os.path.realpath(path))
    with exclusive_lock(real.with_name(f".{real.name}.lock")):
        users = read_users(path) if path.exists() else {}
        text = path.read_text(encoding="utf-8") if users else ""
        before = dict(users)
        change(users)
        head, *blocks = _BLOCK.split(text)
        unchanged = [
            block for block in blocks if users.get(key := _name_in(block)) == before.get(key, "nobody")
        ]
        new = [_block(entry) for key, entry in users.items() if before.get(key) != entry]
        text = "".join([head, *unchanged])
        if text and new and not text.endswith("\n"):
            text += "\n"
        text += ("\n" if text and new else "") + "\n".join(new)
        try:
            is_right = _parsed(text, path) == users
        except TrecexamError:
            is_right = False
        if not is_right:
            raise TrecexamError(
                "is written in a form that this command cannot change: edit it by hand", path=path
            )
        atomic.replace(real, text.encode(), mode=0o600)


def _name_in(block: str) -> str:
    try:
        return name_key(tomllib.loads(block)["user"][0]["name"])
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError):
        return ""


def _block(entry: UserEntry) -> str:
    # A name, a role and hashes have nothing in them that TOML would have escaped.
    fields = entry.model_dump(exclude_defaults=True)
    return "[[user]]\n" + "".join(f'{name} = "{value}"\n' for name, value in fields.items())


def name_key(name: str) -> str:
    """A key that is equal for names that look the same, ignoring case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def digest(token: str) -> str:
    """A token's sha256; tokens have 128 random bits, so that a slower hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
