"""The last complete update: where its inputs and outputs are as they were, there is nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trecexam.files.kept import recall, remember
from trecexam.files.stamps import stamp


class LastUpdate:
    """The last complete update of a grader, or of the files of all graders.

    Args:
        path: the file that has them all.
        name: of the grader; "" for the one grader of a track, and for the files of all graders.
        outputs: gives the files that the update left, by their names.
    """

    def __init__(self, path: Path, name: str, outputs: Callable[[], Mapping[str, Path]]) -> None:
        self._path, self._name, self._outputs = path, name, outputs

    def facts(self, seen: str) -> dict[str, Any] | None:
        """Return what was remembered of an update; None where inputs or outputs changed since.

        Args:
            seen: a digest of all that the update depends on.
        """
        facts: dict[str, Any] = recall(self._path).get(self._name, {})
        return facts if facts.get("seen") == seen and facts["outputs"] == self._stamps() else None

    def remember(self, seen: str, **facts: Any) -> None:
        """Keep facts of an update that is complete.

        Raises:
            TrecexamError: they cannot be written.
        """
        now = {"seen": seen, "outputs": self._stamps(), **facts}
        remember(self._path, {**recall(self._path), self._name: now})

    def forget(self) -> None:
        """Forget the update: the next one looks at everything again.

        Raises:
            TrecexamError: the file cannot be written.
        """
        remember(self._path, {**recall(self._path), self._name: {}})

    def _stamps(self) -> dict[str, list[int]]:
        stamps = {name: stamp(path) for name, path in self._outputs().items()}
        return {name: list(value) for name, value in stamps.items() if value is not None}
