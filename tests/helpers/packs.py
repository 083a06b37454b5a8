"""Hand-made packs, and the shipped one: `python tests/helpers/packs.py` writes it again."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).resolve().parents[2] / "examples" / "demo.trecexam"


def parts_of(path: Path) -> dict[str, bytes]:
    """The parts of a pack, including the manifest."""
    with zipfile.ZipFile(path) as pack:
        return {name: pack.read(name) for name in pack.namelist()}


def lines_of(path: Path, part: str) -> list[Any]:
    """The parsed lines of a part."""
    return [json.loads(line) for line in parts_of(path)[part].splitlines()]


def forged(path: Path, target: Path, changed: Mapping[str, bytes | None], **about: Any) -> Path:
    """A pack with other parts (None removes one), and a matching manifest or one changed by `about`."""
    parts = {name: part for name, part in {**parts_of(path), **changed}.items() if part is not None}
    manifest = json.loads(parts.pop("manifest.json"))
    listed = {n: {"bytes": len(p), "sha256": hashlib.sha256(p).hexdigest()} for n, p in parts.items()}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as pack:
        pack.writestr("manifest.json", json.dumps({**manifest, "parts": listed, **about}))
        for name, part in parts.items():
            pack.writestr(name, part)
    return target


def jsonl(rows: list[Any]) -> bytes:
    """A part of these lines."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def pack_demo(target: Path) -> None:
    """The demo track, graded and packed with its texts, which are ours."""
    from trecexam.cli.main import run

    with tempfile.TemporaryDirectory() as place:
        track = str(Path(place) / "demo")
        assert run(["demo", track]) == run(["pack", track, "-o", str(target), "--texts"]) == 0


if __name__ == "__main__":
    pack_demo(SHIPPED)
    sys.exit(0)
