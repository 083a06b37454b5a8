"""Provenance of qrels: the files beside them say whose labels they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from trecexam.errors import TrecexamError
from trecexam.files import atomic
from trecexam.files.stamps import sha256_of
from trecexam.inputs.protected import refuse_protected
from trecexam.results.text import plural
from trecexam.version import __version__

#: The source of lines that say `NOT_JUDGED`.
UNJUDGED = "unjudged"
#: Files that `trecexam learn` writes into out/: people's judgments and learned labels, and their description.
LEARNED_QRELS, LEARNED_IDENTITY = "learned.qrels", "learned.json"
#: Sources that are people -> who they are in words; all others are models.
PEOPLE = {"human": "human", "override": "by people who rated in the grader's place"}


def sources_beside(qrels: Path) -> Path:
    """Return the file that says who said each line of merged qrels, unless another file was named."""
    return qrels.with_name(f"{qrels.name}.sources.tsv")


def provenance_beside(qrels: Path) -> Path:
    """Return the file that says who made the labels of qrels that `fill` or `export qrels` wrote."""
    return qrels.with_name(f"{qrels.name}.json")


class Provenance(BaseModel):
    """The origin of the labels of a qrels file; as JSON it is the file beside it.

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

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    made_by: str
    version: str
    date: str
    grader: str
    model: str
    prompt: str
    lines: Mapping[str, Annotated[int, Field(ge=0, lt=2**63)]]
    share_by_people: float
    sha256: str

    @property
    def n_by_machine(self) -> int:
        """The number of labels that no person gave."""
        return sum(n for source, n in self.lines.items() if source not in PEOPLE and source != UNJUDGED)

    def said_of(self, qrels: Path | str) -> str:
        """Return a line that says whose labels the file holds."""
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
    provenance = read_provenance(qrels)
    if provenance is not None:
        return provenance.made_by if provenance.n_by_machine else None
    if sources_beside(qrels).exists():
        return "fill"
    is_learned = qrels.name == LEARNED_QRELS and qrels.with_name(LEARNED_IDENTITY).exists()
    return "learn" if is_learned else None


def read_provenance(qrels: Path) -> Provenance | None:
    """Read the file beside the qrels; None where there is none, or where it is another file."""
    try:
        return Provenance.model_validate_json(provenance_beside(qrels).read_bytes())
    except (OSError, ValueError):
        return None


def provenance_notes(qrels: Path, shown: Path | str | None = None) -> tuple[str, ...]:
    """Say whose labels a qrels file (`shown` to people) holds; () where no file beside it says so."""
    provenance = read_provenance(qrels)
    if provenance is None:
        return ()
    line = provenance.said_of(qrels if shown is None else shown)
    if sha256_of(qrels) != provenance.sha256:
        line += f"; the file was changed since, as {provenance_beside(qrels).name} tells"
    return (line,)


def write_with_provenance(
    qrels: Path,
    contents: Mapping[Path, bytes],
    made_by: str,
    by: Sequence[str],
    sources: Mapping[str, int],
) -> list[Path]:
    """Write qrels, the files that belong to them, and whose labels they are; all of them or none.

    A device or a pipe has no file beside it.

    Args:
        qrels: one of the files of `contents`.
        by: grader, model and prompt.
        sources: how many lines each source has.

    Returns:
        The files that were written.
    """
    if qrels.exists() and not qrels.is_file():
        return atomic.replace_together(contents)
    total = sum(sources.values())
    people = sum(sources.get(source, 0) for source in PEOPLE)
    grader, model, prompt = by
    provenance = Provenance(
        made_by=made_by,
        version=__version__,
        date=datetime.now(UTC).date().isoformat(),
        grader=grader,
        model=model,
        prompt=prompt,
        lines=dict(sorted(sources.items())),
        share_by_people=round(people / total, 4) if total else 0.0,
        sha256=atomic.sha256(contents[qrels]),
    )
    content = provenance.model_dump_json(indent=1).encode() + b"\n"
    return atomic.replace_together({**contents, provenance_beside(qrels): content})


def refuse_foreign(qrels: Path, *tracks: Path) -> None:
    """Refuse to write over a file beside the qrels that does not say whose labels they are."""
    beside = provenance_beside(qrels)
    refuse_protected(beside, *tracks)
    if (beside.exists() or beside.is_symlink()) and read_provenance(qrels) is None:
        raise TrecexamError(
            f"exists, and does not say whose labels {qrels.name} holds, as the file of this name would; name "
            "another output, or move it",
            path=beside,
        )
