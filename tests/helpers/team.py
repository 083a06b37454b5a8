"""Users of a page: a users file with one user per role, and logged-in clients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from trecexam.extensions.page.users import add_tokens

#: name -> role.
ROLES = {"ada": "assessor", "orla": "organizer", "rudi": "reader"}


def users_file(folder: Path) -> tuple[Path, dict[str, str]]:
    """The file, and the token of each user."""
    path = folder / "users.toml"
    path.write_text("".join(f'{name} = "{role}"\n' for name, role in ROLES.items()))
    return path, add_tokens(path, list(ROLES))


class Team:
    """A page with users, and their tokens.

    Attributes:
        app: the page.
        tokens: by name.
        path: the users file.
    """

    def __init__(self, app: Any, path: Path, tokens: dict[str, str]) -> None:
        self.app, self.path, self.tokens = app, path, tokens

    def client(self, name: str = "", **settings: Any) -> TestClient:
        """A separate browser; with a name, logged in as that user."""
        made = TestClient(self.app, **{"base_url": "http://127.0.0.1", "follow_redirects": False, **settings})
        if name:
            done = log_in(made, self.tokens[name])
            assert done.status_code == 303, done.text
        return made


def csrf_in(text: str) -> str:
    """The token of a page's forms."""
    match = re.search(r'name="csrf" value="([0-9a-f]+)"', text)
    assert match, text
    return match[1]


def log_in(client: TestClient, token: str, prefix: str = "", **fields: str) -> Any:
    """Sends the login form as a browser does."""
    csrf = csrf_in(client.get(f"{prefix}/login").text)
    return client.post(f"{prefix}/login", data={"csrf": csrf, "token": token, **fields})
