"""What `cross-validate` last showed of the ways to fill, kept beside the store for `fill`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.learned_pool import track_encoder
from trecexam.features.fill.teaching import LEARNED
from trecexam.files.kept import read_kept, write_kept
from trecexam.files.stamps import stamp
from trecexam.graders.base import identity_digest
from trecexam.line.assessment import Assessment
from trecexam.line.official import Official, official_judgments

FILE = "verdict.json"
#: What to do where there is no verdict that counts.
CHECK = "`trecexam cross-validate {}`"


class SplitFigures(BaseModel):
    """What came of a split by each way that can fill.

    Attributes:
        split: what was hidden.
        tau: way -> Kendall's tau with the leaderboard of all judgments, -1..1.
        kappa: way -> of hidden judgments, relevant or not, -1..1; empty where a way has none.
    """

    model_config = ConfigDict(frozen=True)

    split: str
    tau: dict[str, float]
    kappa: dict[str, float]


class Verdict(BaseModel):
    """Which way to fill was best, of which judgments, and by what.

    Attributes:
        best: the way.
        basis: what it hangs on: digests of judgments, encoder and grader.
        grades: whether the grader's ratings were features.
        splits: the figures it was made of.
    """

    model_config = ConfigDict(frozen=True)

    best: str
    basis: dict[str, str]
    grades: bool
    splits: tuple[SplitFigures, ...]

    @property
    def summary(self) -> str:
        """The best way beside learning, or beside the next where that is the best, with their means."""
        others = [way for way in self.splits[0].tau if way != self.best]
        other = LEARNED if LEARNED in others else max(others, key=lambda way: _means(self.splits, way)[0])
        parts = (
            f"{way} (mean tau {tau:.3f}, kappa {kappa:.3f})"
            for way in (self.best, other)
            for tau, kappa in [_means(self.splits, way)]
        )
        return " against ".join(parts)


def best_way(splits: Sequence[SplitFigures]) -> str:
    """Learning, where its mean tau over the splits is greater than each other way's, and its mean kappa not
    below; else of the ways that it does not beat so the one with the greatest mean tau.

    Args:
        splits: at least one, each with the same ways.
    """
    means = {way: _means(splits, way) for way in splits[0].tau}
    tau, kappa = means.pop(LEARNED, (-math.inf, -math.inf))
    unbeaten = [way for way, other in means.items() if other[0] >= tau or other[1] > kappa]
    return max(unbeaten, key=lambda way: means[way][0], default=LEARNED)


def verdict_basis(track: Assessment, official: Official, encoder: Mapping[str, Any]) -> dict[str, str]:
    """What a verdict hangs on, as digests.

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
    """Writes it, in place of an older one.

    Args:
        folder: the track's state.

    Raises:
        TrecexamError: it cannot be written.
    """
    write_kept(folder / FILE, f"{verdict.model_dump_json(indent=1)}\n".encode())


def kept_verdict(track: Assessment, official: Official | None = None) -> tuple[Verdict | None, str | None]:
    """The verdict, where it is of these judgments, the track's encoder and its grader.

    Args:
        official: the judgments; None for the track's.

    Returns:
        The verdict, or None and, where one is kept that does not count, why, in a line.
    """
    content = read_kept(path := track.folder.state / FILE)
    if content is None:
        return None, _again(track, "cannot be read") if stamp(path) else None
    verdict = Verdict.model_validate_json(content)
    try:
        basis = verdict_basis(track, official or official_judgments(track), track_encoder(track).identity)
    except TrecexamError as error:
        return None, f"the kept cross-validation does not count: {error}"
    other = [name for name, digest in basis.items() if verdict.basis.get(name) != digest]
    if other:
        return None, _again(track, f"is of other {' and '.join(map(_NAMES.__getitem__, other))}")
    if verdict.grades and not track.counts.ok:
        return None, _again(track, "is of grades that are gone")
    return verdict, None


#: What a basis names, in words.
_NAMES: Mapping[str, str] = {"judgments": "judgments", "encoder": "encoders", "grader": "graders"}


def _again(track: Assessment, why: str) -> str:
    command = CHECK.format(track.folder.root)
    return f"the kept cross-validation {why}: {command} with what is here now makes another"


def _means(splits: Sequence[SplitFigures], way: str) -> tuple[float, float]:
    kappas = [split.kappa[way] for split in splits if way in split.kappa]
    return (
        sum(split.tau[way] for split in splits) / len(splits),
        sum(kappas) / len(kappas) if kappas else 0.0,
    )
