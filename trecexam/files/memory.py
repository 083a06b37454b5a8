"""What is remembered from one call to the next in a JSON file, and can be lost: then it is made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trecexam.files.atomic import replace


def recall(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one where there is none, or it cannot be read."""
    try:
        remembered = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return remembered if isinstance(remembered, dict) else {}


def remember(path: Path, value: dict[str, Any]) -> None:
    """Writes the file whole.

    Raises:
        TrecexamError: it cannot be written; the old file is as it was.
    """
    replace(path, json.dumps(value).encode())
