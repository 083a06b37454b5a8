"""The submission folder: workflow.yml, Dockerfile, README.md."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from trecexam.errors import TrecexamError

FILES = ("workflow.yml", "Dockerfile", "README.md")


def make_folder(folder: Path) -> list[Path]:
    """Writes missing files; a second call changes nothing.

    Returns:
        The files that were made.

    Raises:
        TrecexamError: another file has one of the names, and nothing is written; or the folder cannot be
            written.
    """
    texts = {folder / name: text_of(name) for name in FILES}
    try:
        for path, text in texts.items():
            if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
                raise TrecexamError(
                    "another file with this name exists and was not changed: move it away, or choose "
                    "another folder",
                    path=path,
                )
        folder.mkdir(parents=True, exist_ok=True)
        made = [path for path in texts if not path.exists()]
        for path in made:
            path.write_text(texts[path], encoding="utf-8")
    except OSError as error:
        raise TrecexamError(f"cannot be written: {error.strerror}", path=error.filename or folder) from None
    return made


def text_of(name: str) -> str:
    """What is in one of `FILES`."""
    return files(__package__).joinpath("texts", name).read_text(encoding="utf-8")
