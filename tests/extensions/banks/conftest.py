from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Exchange, Scripted, serving


@pytest.fixture
def server_track(tmp_path: Path) -> Iterator[Callable[..., tuple[Scripted, Path]]]:
    """Starts a server, and makes a track without a bank, whose generator is the server."""

    def made(
        queries: Mapping[str, str],
        texts: Sequence[str],
        n_ranked: int,
        script: Callable[[Exchange], None],
        **settings: Any,
    ) -> tuple[Scripted, Path]:
        server, root = stack.enter_context(serving(script)), tmp_path / "track"
        (root / "runs").mkdir(parents=True, exist_ok=True)
        (root / "queries.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in queries.items()))
        width = len(str(len(texts) - 1))
        ids = [f"d{n:0{width}}" for n in range(len(texts))]
        passages = [{"docid": d, "text": text} for d, text in zip(ids, texts, strict=True)]
        (root / "passages.jsonl").write_text("".join(json.dumps(each) + "\n" for each in passages))
        (root / "runs" / "a.run").write_text(
            "".join(f"{q} Q0 {d} {n} {99 - n} a\n" for q in queries for n, d in enumerate(ids[:n_ranked]))
        )
        words = {"name": "openai", "model": "tiny", "base_url": server.url, **settings}
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in words.items())
        (root / "trecexam.toml").write_text(f"[generator]\n{lines}")
        return server, root

    with ExitStack() as stack:
        yield made
