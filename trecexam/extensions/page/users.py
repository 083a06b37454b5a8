"""The users of a page: a TOML file of names and roles, and a file beside it with the hashes of their tokens.

```toml
ada = "assessor"
"orla@uni.edu" = "organizer"
```
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from trecexam.errors import TrecexamError
from trecexam.files import atomic
from trecexam.files.kept import read_regular
from trecexam.files.stamps import stamp
from trecexam.files.track_lock import exclusive_lock

if TYPE_CHECKING:
    from starlette.requests import Request

#: Roles: an assessor judges blind; a reader sees everything and changes nothing; an organizer may do all.
Role = Literal["assessor", "organizer", "reader"]
#: The most characters of a name.
LONGEST_NAME = 64
#: Random bytes of a token: nobody guesses 128 bits, so guessing needs no waiting time and locks nobody out.
TOKEN_BYTES = 16
#: Bytes that either file may have: some 100,000 users.
LARGEST_FILE = 2**24
#: Characters of a name beside letters, digits and marks; names are in files and command lines.
SIGNS = "._@+- "
#: The first line of a new file of hashes.
_HEAD = "# Hashes of login tokens. Delete a person's line to get a new link from `trecexam serve --users`.\n"


class User(NamedTuple):
    """A user with the sha256 of the login token, "" without one. A visitor is not logged in."""

    name: str
    role: Role | Literal["visitor"]
    token_sha256: str = ""


VISITOR = User("", "visitor")


def user_of(request: Request) -> User | None:
    """Return the user of a request; None if the page has no users, so that everybody may do everything."""
    user: User | None = request.scope.get("trecexam.user")
    return user


def checked_name(name: str) -> str:
    """Return the name in Unicode's composed form.

    Raises:
        ValueError: it can be no name of a user.
    """
    composed = unicodedata.normalize("NFC", name)
    is_allowed = all(sign in SIGNS or unicodedata.category(sign)[0] in "LMN" for sign in composed)
    if not is_allowed or composed != " ".join(composed.split()) or not 0 < len(composed) <= LONGEST_NAME:
        raise ValueError(
            f"{name!a} cannot be a user's name: use up to {LONGEST_NAME} letters, digits, . _ @ + - and "
            f"blanks"
        )
    return composed


class Users:
    """The users in a file, read again after a change of it or of the hashes.

    Args:
        log: receives a line on a file that became unreadable; until it is readable, nobody can log in.

    Raises:
        TrecexamError: an unreadable file, or an invalid user.
    """

    def __init__(self, path: Path, log: Callable[[str], None] = lambda line: None) -> None:
        self._path = path
        self._log = log
        self._login_url = ""
        self._stamp = self._stamps()
        self._users: Mapping[str, User] = read_users(path)
        self._trouble = ""

    @property
    def trouble(self) -> str:
        """Why a file cannot be read; "" if both can."""
        self.refresh()
        return self._trouble

    def get(self, name: str) -> User | None:
        """Return the user with this name, ignoring case, from the current file."""
        self.refresh()
        return self._users.get(name_key(name))

    def with_token(self, token: str) -> User | None:
        """Return the user with this token, or None; takes constant time."""
        self.refresh()
        token_sha256 = digest(token)
        right = [
            entry
            for entry in self._users.values()
            if hmac.compare_digest(token_sha256, entry.token_sha256 or "-" * len(token_sha256))
        ]
        return right[0] if right else None

    def make_links(self, login_url: str) -> None:
        """Log a login link for each user without a token, now and after each change of the files."""
        self._login_url = login_url
        self._log_links()

    def refresh(self) -> None:
        """Read the files again if they changed."""
        if (now := self._stamps()) == self._stamp:
            return
        self._stamp = now
        try:
            self._users, self._trouble = read_users(self._path), ""
        except TrecexamError as error:
            self._users, self._trouble = {}, str(error)
            self._log(f"{error}; nobody can log in until the file is corrected")
            return
        try:
            self._log_links()
        except TrecexamError as error:
            self._log(f"{error}; new users get no login link")

    def _stamps(self) -> object:
        return stamp(self._path), stamp(hashes_file(self._path))

    def _log_links(self) -> None:
        if not self._users:
            self._log(
                f'{self._path} names nobody, so nobody can log in; write lines such as ada = "assessor"'
            )
        new = [entry for entry in self._users.values() if not entry.token_sha256]
        if not new or not self._login_url:
            return
        tokens = add_tokens(self._path, [entry.name for entry in new])
        self._users = read_users(self._path)
        for entry in new:
            if token := tokens.get(entry.name):
                self._log(f"{entry.name} ({entry.role}) logs in at {self._login_url}?token={token}")


def hashes_file(path: Path) -> Path:
    """Return the file with the hashes of the tokens of a users file."""
    return path.with_name(f"{path.name}.tokens")


def read_users(path: Path) -> dict[str, User]:
    """Read the users of a file with their hashes, by case-folded name; errors are those of `Users`."""
    try:
        data = tomllib.loads(_read(path))
    except FileNotFoundError:
        raise TrecexamError(
            'is not there; write a line for each person into it, such as ada = "assessor"', path=path
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise TrecexamError(f"not valid TOML: {error}", path=path) from None
    except RecursionError:
        raise TrecexamError("not valid: nested too deeply", path=path) from None
    hashes = _hashes(path)
    users: dict[str, User] = {}
    for name_in_file, role in data.items():
        try:
            name = checked_name(name_in_file)
        except ValueError as error:
            raise TrecexamError(str(error), path=path) from None
        if role not in get_args(Role):
            # The value is not printed: it may be a secret.
            raise TrecexamError(
                f'{name}: give a role, as in "{name}" = "assessor"; the roles are '
                f"{', '.join(get_args(Role))}",
                path=path,
            )
        if name_key(name) in users:
            raise TrecexamError(f"a second {name!r}; names that differ only in case are the same", path=path)
        users[name_key(name)] = User(name, role, hashes.get(name_key(name), ""))
    return users


def add_tokens(path: Path, names: list[str]) -> dict[str, str]:
    """Make a token for each of these users without one, and store the token's hash.

    Returns:
        Name -> token, of the new ones.

    Raises:
        TrecexamError: the hashes cannot be read or written.
    """
    file = hashes_file(path)
    with exclusive_lock(file.with_name(f".{file.name}.lock")):
        hashes = _hashes(path)
        tokens = {name: secrets.token_urlsafe(TOKEN_BYTES) for name in names if name_key(name) not in hashes}
        text = _read(file) if file.exists() else _HEAD
        text += "\n" * (not text.endswith("\n"))
        text += "".join(f"{name}\t{digest(token)}\n" for name, token in tokens.items())
        if tokens:
            atomic.replace(file, text.encode(), mode=0o600)
    return tokens


def _hashes(path: Path) -> dict[str, str]:
    """Case-folded name -> hash of the token; {} without a file."""
    file, hashes = hashes_file(path), {}
    try:
        lines = _read(file).splitlines()
    except FileNotFoundError:
        return {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, token_sha256 = line.partition("\t")
        if not re.fullmatch("[0-9a-f]{64}", token_sha256):
            raise TrecexamError(
                "is no name and sha256: delete the line, and its person gets a new link",
                path=file,
                line=number,
            )
        hashes[name_key(name)] = token_sha256
    return hashes


def _read(path: Path) -> str:
    """Return the text of a file."""
    try:
        return read_regular(path, LARGEST_FILE).decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror or error}", path=path) from None
    except UnicodeDecodeError:
        raise TrecexamError("is no UTF-8", path=path) from None


def name_key(name: str) -> str:
    """Return a key that is equal for names that look the same, ignoring case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def digest(token: str) -> str:
    """Return a token's sha256; tokens have 128 random bits, so that a slower hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
