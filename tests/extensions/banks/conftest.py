from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def server_track(tmp_path: Path) -> Callable[..., Path]:
    """Makes a track without a bank, whose generator is a server."""

    def made(
        queries: Mapping[str, str], texts: Sequence[str], n_ranked: int, url: str, **settings: Any
    ) -> Path:
        root = tmp_path / "track"
        (root / "runs").mkdir(parents=True, exist_ok=True)
        (root / "queries.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in queries.items()))
        width = len(str(len(texts) - 1))
        ids = [f"d{n:0{width}}" for n in range(len(texts))]
        (root / "passages.jsonl").write_text(
            "".join(json.dumps({"docid": d, "text": text}) + "\n" for d, text in zip(ids, texts, strict=True))
        )
        (root / "runs" / "a.run").write_text(
            "".join(f"{q} Q0 {d} {n} {99 - n} a\n" for q in queries for n, d in enumerate(ids[:n_ranked]))
        )
        words = {"name": "openai", "model": "tiny", "base_url": url, **settings}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
        (root / "trecexam.toml").write_text(f"[generator]\n{lines}")
        return root

    return made
