"""Which judgments a command wrote, and where it is said who said each of their lines."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from converters.records import NOT_JUDGED
from trecexam.files.stamps import Stamp, stamp

#: Sources of lines that no machine labelled: people's judgments, and passages that nobody judged.
_NOT_OF_MACHINES = frozenset(("human", "unjudged"))


def sources_beside(qrels: Path) -> Path:
    """Where it is said who said each line of merged qrels, unless another file was named."""
    return qrels.with_name(f"{qrels.name}.sources.tsv")


#: What `trecexam learn` writes into out/: people's judgments and learned labels; and what it says of them.
LEARNED_QRELS, LEARNED_IDENTITY = "learned.qrels", "learned.json"


def written_by(qrels: Path) -> str | None:
    """Return the command that wrote machine labels into these qrels: fill or learn; else None.

    `fill --as-unjudged` writes none.
    """
    sources = sources_beside(qrels)
    if sources.exists():
        return "fill" if _has_machine_labels(qrels, sources, (stamp(qrels), stamp(sources))) else None
    is_learned = qrels.name == LEARNED_QRELS and qrels.with_name(LEARNED_IDENTITY).exists()
    return "learn" if is_learned else None


@lru_cache(maxsize=16)
def _has_machine_labels(qrels: Path, sources: Path, _stamps: tuple[Stamp | None, ...]) -> bool:
    """Return True unless all lines of a machine say `NOT_JUDGED`; True where the two files do not match."""
    try:
        labels = [line.split()[3] for line in qrels.read_bytes().splitlines()]
        header, *rows = (line.split("\t") for line in sources.read_text("utf-8").splitlines())
        by = [row[header.index("source")] for row in rows]
        return any(
            source not in _NOT_OF_MACHINES and int(label) != NOT_JUDGED
            for source, label in zip(by, labels, strict=True)
        )
    except (OSError, ValueError, IndexError):
        return True
