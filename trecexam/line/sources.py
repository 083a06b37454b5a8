"""Where it is said who said each line of merged judgments."""

from __future__ import annotations

from pathlib import Path


def sources_beside(qrels: Path) -> Path:
    """Where it is said who said each line of merged qrels, unless another file was named."""
    return qrels.with_name(f"{qrels.name}.sources.tsv")
