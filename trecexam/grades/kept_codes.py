"""Codes of a track's cells as the last update left them, read in place of an unchanged store's rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_kept, write_kept
from trecexam.files.stamps import Stamp

Codes = NDArray[np.int8]


class KeptCodes:
    """The file of one track; it can be removed at any time."""

    def __init__(self, path: Path, reader: Any) -> None:
        """Args: reader: JSON-ready; differs where stored answers may be read otherwise."""
        self._path = path
        self._reader = json.dumps(reader)

    def read(self, store: Stamp | None) -> Mapping[bytes, Codes]:
        """Return codes by `Sheet.token`; {} where the store or `reader` changed since.

        Args:
            store: see `GradeStore.at_rest`.
        """
        if store is None or (content := read_kept(self._path)) is None:
            return {}
        head, _, cells = content.partition(b"\n")
        about = json.loads(head)
        if about["of"] != self._of(store):
            return {}
        codes, shapes = np.frombuffer(cells, np.int8), about["shapes"].items()
        ends = np.cumsum([math.prod(shape) for _, shape in shapes])
        parts = np.split(codes, ends[:-1])
        return {
            bytes.fromhex(token): part.reshape(shape)
            for (token, shape), part in zip(shapes, parts, strict=True)
        }

    def write(self, store: Stamp | None, codes_of: Mapping[bytes, Codes]) -> None:
        """Write the codes of the store; where this fails, the store is read again."""
        if store is None or not codes_of:
            return
        shapes = {token.hex(): codes.shape for token, codes in codes_of.items()}
        about = {"of": self._of(store), "shapes": shapes}
        content = (
            json.dumps(about).encode() + b"\n" + b"".join(codes.tobytes() for codes in codes_of.values())
        )
        with contextlib.suppress(TrecexamError):
            write_kept(self._path, content)

    def _of(self, store: Stamp) -> str:
        return hashlib.sha256(json.dumps([self._reader, store]).encode()).hexdigest()
