"""Runs command lines on a track in this process, and notes all that one can see of them."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import adapter
from scripted_server import Exchange, Scripted, serving

from trecexam.cli.main import run


class Recorder:
    """One track and what was seen of it, step by step.

    Attributes:
        root: the folder of everything.
        track: the folder of the track.
        steps: what was seen so far.
        exact: False where an encoder has a say, whose last digits hang on the machine: four digits of values,
            of files the names, of answers the ratings.
    """

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.track = root / "track"
        self.exact = True
        self.steps: list[dict[str, Any]] = []
        self._stack = stack
        self._requests: Counter[str] = Counter()

    def patch(self, module: object, name: str, value: object) -> None:
        """Puts something else in the place of a module's name, until the track is done."""
        self._stack.enter_context(mock.patch.object(module, name, value))

    def server(self, script: Callable[[Exchange], None]) -> str:
        """Starts a server that counts what it is asked; gives its URL."""

        def counted(exchange: Exchange) -> None:
            body = json.dumps(exchange.body, sort_keys=True)
            self._requests[f"{exchange.command} {exchange.path} {adapter.digest(body)}"] += 1
            script(exchange)

        server: Scripted = self._stack.enter_context(serving(counted))
        return server.url

    def write(self, name: str, text: str) -> Path:
        """A file of the track."""
        path = self.track / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def jsonl(self, name: str, *rows: object) -> Path:
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def says(self, *words: str | Path, json: bool = True) -> Any:
        """Runs a command, with --json unless told otherwise; notes exit code, values, notes, requests."""
        line = [str(word) for word in (*words, *(["--json"] if json else []))]
        out, err = io.StringIO(), io.StringIO()
        self._requests.clear()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = run(adapter.command(line))
        value = _json(out.getvalue()) if json else None
        step: dict[str, Any] = {"command": adapter.scrubbed(" ".join(line), self.root), "exit": status}
        if json:
            fit = adapter.of_fit(step["command"])
            step["values"] = adapter.values(value, self.root, 9 if self.exact else 4, fit=fit)
        elif out.getvalue():
            text = adapter.scrubbed(out.getvalue(), self.root)
            step["prints"] = (adapter.apart if adapter.of_fit(step["command"]) else adapter.digest)(text)
        step["notes"] = sorted(adapter.notes(value, err.getvalue(), self.root))
        step["requests"] = [f"{key} x{count}" for key, count in sorted(self._requests.items())]
        self.steps.append(step)
        return value

    def each(self, track: Path, *lines: str) -> None:
        """`says` of each command line, without the track in it."""
        for line in lines:
            name, *words = line.split()
            self.says(name, track, *words)

    def does(self, *words: str | Path) -> None:
        """The same without --json."""
        self.says(*words, json=False)

    def made(self, *folders: Path) -> None:
        """Notes the files of out/ and of the track's folder (or of these folders), and the store."""
        if folders:
            for folder in folders:
                self.steps.append({"command": f"files of {folder.name}", "files": self._files(folder)})
            return
        of_track = self._files(self.track, ("out/", "runs/"))
        self.steps.append({"command": "files of the track", "files": of_track})
        self.steps.append({"command": "files of out", "files": self._files(self.track / "out")})
        self.steps.append({"command": "report", "notes": adapter.page_notes(self.track, self.root)})
        self.stored(self.track)

    def _files(self, folder: Path, without: tuple[str, ...] = ()) -> dict[str, Any]:
        found = adapter.files(folder, self.root, without)
        return found if self.exact else dict.fromkeys(found, "there")

    def stored(self, track: Path) -> None:
        """Notes what a track's store has."""
        store, label = adapter.store(track, answers=self.exact), f"store of {track.name}"
        earlier = [step for step in self.steps if step["command"] == label and "as" not in step]
        same = bool(earlier) and earlier[-1] == {"command": label, **store}
        self.steps.append({"command": label, **({"as": "before"} if same else store)})

    def again(self) -> None:
        """Forgets all but the answers, and updates: nothing may be asked again, and all must be as it was."""
        for path in (self.track / ".trecexam").iterdir():
            if not path.name.startswith("grades.sqlite"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self.track / "out")
        self.does("watch", self.track, "--once")
        self.made()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.startswith(("{", "["))]
