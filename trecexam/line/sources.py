"""Which judgments a command wrote, and where it is said who said each of their lines."""

from __future__ import annotations

from pathlib import Path


def sources_beside(qrels: Path) -> Path:
    """Where it is said who said each line of merged qrels, unless another file was named."""
    return qrels.with_name(f"{qrels.name}.sources.tsv")


#: What `trecexam learn` writes into out/: people's judgments and learned labels; and what it says of them.
LEARNED_QRELS, LEARNED_IDENTITY = "learned.qrels", "learned.json"


def written_by(qrels: Path) -> str | None:
    """The command that wrote these qrels, so that not all labels are people's: fill or learn; else None."""
    if sources_beside(qrels).exists():
        return "fill"
    is_learned = qrels.name == LEARNED_QRELS and qrels.with_name(LEARNED_IDENTITY).exists()
    return "learn" if is_learned else None
