"""Whose labels a qrels file holds: what the files beside it say."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from trecexam.tables.text import plural


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
            the grader's place), "model", "learned".
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

    def said_of(self, qrels: Path | str) -> str:
        """Whose labels the file holds, in a line."""
        by = self.model or f"the grader {self.grader}"
        by += f" with {self.prompt}" if self.prompt else ""
        people = {source: n for source, n in self.lines.items() if source in PEOPLE and n}
        total = sum(self.lines.values())
        machine = total - sum(people.values())
        of_people = ", ".join(f"{n:,} {PEOPLE[source]}" for source, n in people.items())
        if not people:
            return f"{qrels} holds labels by {by}, not human judgments"
        if not machine:
            return f"{qrels} holds labels of people alone: {of_people}"
        of_machine = f"{machine:,} of {plural(total, 'label')} ({machine / total:.0%})"
        return f"{qrels} holds {of_machine} by {by}, not human judgments; {of_people}"


def written_by(qrels: Path) -> str | None:
    """The command that wrote these qrels, so that not all labels are people's: fill, learn or export qrels;
    else None.
    """
    provenance = read_provenance(qrels)
    if provenance is not None:
        return provenance.made_by
    if sources_beside(qrels).exists():
        return "fill"
    is_learned = qrels.name == LEARNED_QRELS and qrels.with_name(LEARNED_IDENTITY).exists()
    return "learn" if is_learned else None


def read_provenance(qrels: Path) -> Provenance | None:
    """What the file beside the qrels says; None where there is none, or where it is another file."""
    try:
        value = json.loads(provenance_beside(qrels).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    names = [field.name for field in fields(Provenance)]
    if not isinstance(value, dict) or not value.keys() >= set(names):
        return None
    lines = value["lines"]
    if not isinstance(lines, dict) or not all(isinstance(n, int) for n in lines.values()):
        return None
    return Provenance(**{name: value[name] for name in names})


def provenance_file(qrels: Path | None) -> Path | None:
    """The file beside qrels that says whose labels they are; None where there is none."""
    return None if qrels is None or read_provenance(qrels) is None else provenance_beside(qrels)


def provenance_notes(qrels: Path, shown: Path | str | None = None) -> tuple[str, ...]:
    """Whose labels a qrels file holds, one per line; none where nothing beside it says so.

    Args:
        shown: the file as people see it; None for its path.
    """
    provenance = read_provenance(qrels)
    if provenance is None:
        return ()
    line = provenance.said_of(qrels if shown is None else shown)
    if _digest(qrels) != provenance.sha256:
        line += f"; the file was changed since, as {provenance_beside(qrels).name} tells"
    return (line,)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
