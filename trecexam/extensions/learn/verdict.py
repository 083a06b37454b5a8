"""The stored result of the last `cross-validate`, which `fill` uses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.learned_pool import track_encoder
from trecexam.files.kept import read_kept, write_kept
from trecexam.files.stamps import stamp
from trecexam.graders.base import identity_digest
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official, track_judgments

FILE = "verdict.json"
#: What to do where there is no verdict that counts.
CHECK = "`trecexam cross-validate {}`"


class Verdict(BaseModel):
    """The best method to fill for these judgments.

    Attributes:
        best: "learned", "grader", or "none": leave holes.
        basis: what it depends on: digests of judgments, encoder and grader.
        losses: way -> how far it is from the right order, see `arithmetic.check.compare`.
    """

    model_config = ConfigDict(frozen=True)

    best: str
    basis: dict[str, str]
    losses: dict[str, float]

    @property
    def summary(self) -> str:
        """The methods with their losses, best first."""
        ordered = sorted(self.losses, key=lambda method: (method != self.best, self.losses[method]))
        return ", ".join(f"{method} {self.losses[method]:.3f}" for method in ordered)


def verdict_basis(track: Assessment, official: Official, encoder: Mapping[str, Any]) -> dict[str, str]:
    """Digests of all that a verdict depends on.

    Args:
        encoder: its identity.
    """
    rows = sorted(
        f"{query_id}\0{doc_id}\0{label}\n"
        for query_id, judged in official.judged.items()
        for doc_id, label in judged.items()
    )
    return {
        "judgments": hashlib.sha256("".join(rows).encode(errors="surrogatepass")).hexdigest(),
        "encoder": identity_digest(encoder).hex(),
        "grader": identity_digest(track.grader.identity).hex(),
    }


def keep_verdict(folder: Path, verdict: Verdict) -> None:
    """Writes the verdict, replacing an older one.

    Args:
        folder: the track's state.

    Raises:
        TrecexamError: it cannot be written.
    """
    write_kept(folder / FILE, f"{verdict.model_dump_json(indent=1)}\n".encode())


def kept_verdict(track: Assessment, official: Official | None = None) -> tuple[Verdict | None, str | None]:
    """The stored verdict, if it belongs to these judgments, encoder and grader.

    Args:
        official: the judgments; None for the track's.

    Returns:
        The verdict, or None and, where one is kept that does not count, why, in a line.
    """
    content = read_kept(path := track.folder.state / FILE)
    if content is None:
        return None, _again(track, "cannot be read") if stamp(path) else None
    try:
        verdict = Verdict.model_validate_json(content)
        basis = verdict_basis(track, official or track_judgments(track), track_encoder(track).identity)
    except ValueError:
        return None, _again(track, "cannot be read")
    except TrecexamError as error:
        return None, f"the stored cross-validation is not used: {error}"
    other = [name for name, digest in basis.items() if verdict.basis.get(name) != digest]
    if other:
        return None, _again(track, f"was made with another {' and '.join(map(_NAMES.__getitem__, other))}")
    if verdict.best == "grader" and not track.counts.ok:
        return None, _again(track, "was made with grades that no longer exist")
    return verdict, None


#: What a basis names, in words.
_NAMES: Mapping[str, str] = {"judgments": "set of judgments", "encoder": "encoder", "grader": "grader"}


def _again(track: Assessment, why: str) -> str:
    command = CHECK.format(track.folder.root)
    return f"the stored cross-validation {why}: run {command} again"
