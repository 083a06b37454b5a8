"""Whose labels a qrels file holds: what the files beside it say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from converters.records import NOT_JUDGED
from trecexam.files.stamps import Stamp, stamp
from trecexam.line.input_files import sha256_of
from trecexam.tables.text import plural

#: The source of lines that say `NOT_JUDGED`.
UNJUDGED = "unjudged"
#: Sources of lines that no machine labelled: people's judgments, and passages that nobody judged.
_NOT_OF_MACHINES = frozenset(("human", UNJUDGED))


def sources_beside(qrels: Path) -> Path:
    """Where it is said who said each line of merged qrels, unless another file was named."""
    return qrels.with_name(f"{qrels.name}.sources.tsv")


def provenance_beside(qrels: Path) -> Path:
    """Where it is said who made the labels of qrels that `fill` or `export qrels` wrote."""
    return qrels.with_name(f"{qrels.name}.json")


#: What `trecexam learn` writes into out/: people's judgments and learned labels; and what it says of them.
LEARNED_QRELS, LEARNED_IDENTITY = "learned.qrels", "learned.json"
#: Who a source is in words; all others are models.
PEOPLE = {"human": "human", "override": "by people who rated in the grader's place"}


@dataclass(frozen=True)
class Provenance:
    """Who made the labels of a qrels file; as JSON it is the file beside it.

    Attributes:
        made_by: the command that wrote the qrels.
        version: of trecexam.
        date: the day, UTC.
        grader, model, prompt: what made the labels that are no person's; "" where there is none.
        lines: how many lines each source has: "human" (official judgments), "override" (people who rated in
            the grader's place), "model", "learned", "unjudged" (lines that say `NOT_JUDGED`).
        share_by_people: of all lines, 0..1.
        sha256: of the qrels file, as it is on the disk.
    """

    made_by: str
    version: str
    date: str
    grader: str
    model: str
    prompt: str
    lines: Mapping[str, int]
    share_by_people: float
    sha256: str

    @property
    def n_by_machine(self) -> int:
        """The number of labels that no person gave."""
        return sum(n for source, n in self.lines.items() if source not in PEOPLE and source != UNJUDGED)

    def said_of(self, qrels: Path | str) -> str:
        """Whose labels the file holds, in a line."""
        by = self.model or f"the grader {self.grader}"
        by += f" with {self.prompt}" if self.prompt else ""
        people = {source: n for source, n in self.lines.items() if source in PEOPLE and n}
        machine = self.n_by_machine
        total = machine + sum(people.values())
        of_people = ", ".join(f"{n:,} {PEOPLE[source]}" for source, n in people.items())
        if not people:
            return f"{qrels} holds labels by {by}, not human judgments"
        if not machine:
            return f"{qrels} holds labels of people alone: {of_people}"
        of_machine = f"{machine:,} of {plural(total, 'label')} ({machine / total:.0%})"
        return f"{qrels} holds {of_machine} by {by}, not human judgments; {of_people}"


def written_by(qrels: Path) -> str | None:
    """Return the command that wrote machine labels into these qrels: fill, learn or export qrels; else None.

    `fill --as-unjudged` writes none.
    """
    sources, provenance = sources_beside(qrels), read_provenance(qrels)
    if sources.exists():
        return "fill" if _has_machine_labels(qrels, sources, (stamp(qrels), stamp(sources))) else None
    if provenance is not None:
        return provenance.made_by if provenance.n_by_machine else None
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


def read_provenance(qrels: Path) -> Provenance | None:
    """What the file beside the qrels says; None where there is none, or where it is another file."""
    try:
        value = json.loads(provenance_beside(qrels).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not all(field.name in value for field in fields(Provenance)):
        return None
    lines, share = value["lines"], value["share_by_people"]
    texts = [value[name] for name in ("made_by", "version", "date", "grader", "model", "prompt", "sha256")]
    if not all(isinstance(text, str) for text in texts) or not isinstance(share, int | float):
        return None
    if not isinstance(lines, dict) or not all(type(n) is int and 0 <= n < 2**63 for n in lines.values()):
        return None
    made_by, version, date, grader, model, prompt, sha256 = texts
    return Provenance(made_by, version, date, grader, model, prompt, lines, float(share), sha256)


def provenance_notes(qrels: Path, shown: Path | str | None = None) -> tuple[str, ...]:
    """Whose labels a qrels file holds, one per line; none where nothing beside it says so.

    Args:
        shown: the file as people see it; None for its path.
    """
    provenance = read_provenance(qrels)
    if provenance is None:
        return ()
    line = provenance.said_of(qrels if shown is None else shown)
    if sha256_of(qrels) != provenance.sha256:
        line += f"; the file was changed since, as {provenance_beside(qrels).name} tells"
    return (line,)
