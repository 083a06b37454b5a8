"""Writes qrels with a file beside them that says whose labels they hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.files import atomic
from trecexam.line.protected import refuse_protected
from trecexam.line.sources import PEOPLE, Provenance, provenance_beside, read_provenance
from trecexam.version import __version__

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def graded_by(track: Assessment) -> tuple[str, str, str]:
    """The grader of a track, its model, and its prompts; "" where there is none."""
    items = [item for sheet in track.sheets.values() for item in sheet.items]
    return str(track.grader.identity["grader"]), *track.grades.model_and_prompt(items)


def write_with_provenance(
    qrels: Path,
    contents: Mapping[Path, bytes],
    made_by: str,
    by: Sequence[str],
    sources: Mapping[str, int],
) -> list[Path]:
    """Writes qrels, the files that belong to them, and whose labels they are; all of them or none.

    A device or a pipe has no file beside it.

    Args:
        qrels: one of the files of `contents`.
        by: grader, model and prompt.
        sources: how many lines each source has.

    Returns:
        The files that were written.

    Raises:
        TrecexamError: they cannot be written, or a file of somebody else is in the way.
    """
    if qrels.exists() and not qrels.is_file():
        return atomic.replace_together(contents)
    total = sum(sources.values())
    people = sum(sources.get(source, 0) for source in PEOPLE)
    grader, model, prompt = by
    provenance = Provenance(
        made_by,
        __version__,
        datetime.now(UTC).date().isoformat(),
        grader,
        model,
        prompt,
        dict(sorted(sources.items())),
        round(people / total, 4) if total else 0.0,
        hashlib.sha256(contents[qrels]).hexdigest(),
    )
    content = json.dumps(asdict(provenance), indent=1, ensure_ascii=False).encode() + b"\n"
    return atomic.replace_together({**contents, provenance_beside(qrels): content})


def refuse_foreign(qrels: Path, *tracks: Path) -> None:
    """Refuses to write over a file beside the qrels that does not say whose labels they are.

    Args:
        tracks: as of `refuse_protected`.

    Raises:
        TrecexamError: with the file.
    """
    beside = provenance_beside(qrels)
    refuse_protected(beside, *tracks)
    if (beside.exists() or beside.is_symlink()) and read_provenance(qrels) is None:
        raise TrecexamError(
            f"exists, and does not say whose labels {qrels.name} holds, as the file of this name would; name "
            "another output, or move it",
            path=beside,
        )
