"""Files that `.trecexam/` keeps from one call to the next. Missing or damaged, they are made again.

Each kept file is a head of 128 bytes, which has the length and the sha256 of the rest, and the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.files.atomic import replace

#: Bytes of a head; what follows is aligned for mapping.
HEAD = 128
#: The largest file of the track that is read as a whole, in bytes.
LARGEST = 2**31


def read_regular(path: Path, largest: int = LARGEST) -> bytes:
    """Read a file of so many bytes at most; a pipe, a socket or a device is neither waited for nor read.

    Raises:
        OSError: it cannot be read, is no file, or is too large.
    """
    try:
        with open_input(path) as file:
            if os.fstat(file.fileno()).st_size > largest:
                raise OSError(f"larger than {largest // 2**20:,} MiB")
            return file.read()
    except ConversionError as error:
        raise OSError(error.reason) from None


def read_object(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of the track; empty where there is none, or it cannot be read."""
    with contextlib.suppress(OSError):
        return _object(read_regular(path))
    return {}


def _object(content: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(content)
        if isinstance(value, dict):
            return value
    return {}


def sealed(name: str, payload: bytes, version: int = 1) -> bytes:
    """Return the payload with its head, which does not fit under another name or version of its format."""
    return _head(name, payload, version) + payload


def unsealed(name: str, content: memoryview, version: int = 1) -> memoryview | None:
    """Return the payload that `sealed` put at the start of the content; None where it is damaged."""
    head = bytes(content[:HEAD])
    length = re.match(rb"trecexam-kept (\d{1,15}) ", head)
    payload = content[HEAD : HEAD + (int(length[1]) if length else 0)]
    return payload if head == _head(name, payload, version) else None


def write_kept(path: Path, payload: bytes, version: int = 1, *, mode: int = 0o666) -> None:
    """Keep a payload, in place of whatever is there."""
    replace(path, sealed(path.name, payload, version), mode=mode, into_special=False)


def read_kept(path: Path, version: int = 1) -> bytes | None:
    """Read what `write_kept` wrote; None where it is missing, damaged, another file or of another version."""
    with contextlib.suppress(OSError):
        content = read_regular(path, HEAD + LARGEST)
        payload = unsealed(path.name, memoryview(content), version)
        if payload is not None and HEAD + len(payload) == len(content):
            return bytes(payload)
    return None


def recall(path: Path) -> dict[str, Any]:
    """Read the JSON object that `remember` kept; empty where it is missing or damaged."""
    return _object(read_kept(path) or b"")


def remember(path: Path, value: dict[str, Any]) -> None:
    """Keep a JSON object."""
    write_kept(path, json.dumps(value).encode())


def _head(name: str, payload: bytes | memoryview, version: int) -> bytes:
    digest = hashlib.sha256(f"{version} {name}\n".encode(errors="surrogateescape"))
    digest.update(payload)
    return f"trecexam-kept {len(payload)} {digest.hexdigest()}".ljust(HEAD - 1).encode() + b"\n"
