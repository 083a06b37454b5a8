"""Write small input files."""

from __future__ import annotations

import json
from pathlib import Path


def put(folder: Path, content: str | bytes, name: str = "file") -> Path:
    """Write a file into a folder and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def put_rows(path: Path, *rows: object) -> Path:
    """Write a line of JSON a row, texts as they are, and return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path
