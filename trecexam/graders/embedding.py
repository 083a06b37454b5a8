"""The `embedding` grader: cosine of passage and item in a sentence-embedding space, cut into 0..5.

Runs that rank by the same encoder come out too high, and the cut points were fitted on TREC DL 2019:
tests/benchmarks/results/embedding-elsewhere.md has its figures on other collections. How points are fitted
says `tests/benchmarks/cut_points.py`, which does it for any track with official judgments.

Each passage and item is embedded once in an update: a cell costs one dot product.
"""

from __future__ import annotations

import itertools
import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Factory, Grader
from trecexam.graders.weights import (
    HOW_TO_GET,
    OFFLINE_MODEL,
    check_device,
    config_digest,
    embedding_folder,
    environment_on,
    offline_folder,
    shared_model,
    weights_digest,
)
from trecexam.packages import missing_packages

#: Cosines from which the rating is 1, 2, .. 5. Fitted on 21 queries, 4,339 judged passages of TREC DL 2019
#: with all-MiniLM-L6-v2; two digits.
CUT_POINTS = (0.52, 0.56, 0.59, 0.63, 0.74)
#: Cosines at which the ratings 1, 2, .. 5 or better are as probable as not, and the width of the logistic
#: around them; fitted on the same judgments. The probability of a single cell, one of some ten, is low.
SOFT_POINTS, SOFT_WIDTH = (0.84, 0.90, 0.96, 1.03, 1.31), 0.16
#: Characters of a batch on a CPU, which gains nothing from more, and on another device.
BATCH_ON_CPU, BATCH = 2**11, 2**18
#: Characters and passages whose cells are stored together, on a CPU and on another device: progress moves
#: every few seconds, and nobody waits long for Ctrl-C.
STORED_ON_CPU, STORED = (2**15, 64), (2**18, 512)
#: Vectors of passages that are kept for other queries; all go where there are more.
MOST_VECTORS = 2**17


class EmbeddingGrader(Grader):
    """Grades by cosine. The raw answer is the cosine with four digits; the cut is made on those."""

    cuts: ClassVar[Sequence[float]] = CUT_POINTS
    #: Cells that are read ahead: what comes twice in them is embedded once.
    read_ahead: ClassVar[int] = 2**14

    def __init__(
        self,
        folder: Path,
        cut_points: Sequence[float] = CUT_POINTS,
        device: str | None = None,
        *,
        model: str | None = None,
        dtype: str = "float32",
    ) -> None:
        """Make a grader with the model in `folder`, which people call `model`; `dtype` "auto" is float32."""
        self.folder, self.device = folder, device
        self.dtype = "float32" if dtype == "auto" else dtype
        self.cut_points = tuple(cut_points)
        self.model = model or folder.name
        self.model_and_prompt = self.model, ""
        self.probabilities = _reading(self.cut_points).get("probabilities")
        self.cosines = _cosines

    @classmethod
    def create(cls, settings: GraderSection, root: Path) -> Self:
        n_cut_points = len(settings.cut_points or ())
        if n_cut_points not in (0, len(cls.cuts)):
            raise GraderError(
                f"`cut_points` in [grader] are {n_cut_points}: give {len(cls.cuts)} cosines in rising order"
            )
        return cls(
            embedding_folder(settings.model, settings.revision, root),
            settings.cut_points or cls.cuts,
            settings.device,
            model=settings.model or OFFLINE_MODEL,
            dtype=settings.dtype,
        )

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        return {
            "grader": "embedding",
            "weights_sha256": weights_digest(self.folder),
            "config_sha256": config_digest(self.folder),
            "cut_points": list(self.cut_points),
            # Stores of before the setting are of float32.
            **({} if self.dtype == "float32" else {"dtype": self.dtype}),
        }

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what the model runs on, or would."""
        _check_installed()
        import torch
        from sentence_transformers.util import get_device_name

        return environment_on(torch.device(self.device or get_device_name()), self.dtype)

    @property
    def model_to_load(self) -> str:
        return "" if "_model" in self.__dict__ else self.model

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, shape (len(texts), dimension); the model cuts off what is too long."""
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        most = BATCH_ON_CPU if self._model.device.type == "cpu" else BATCH
        vectors = [
            self._model.encode(batch, batch_size=len(batch), show_progress_bar=False)
            for batch in _parts((texts[index] for index in order), most)
        ]
        in_order = np.empty_like(made := np.concatenate(vectors).astype(np.float32))
        # bfloat16 leaves lengths that are 1 to two digits.
        in_order[order] = made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12)
        return in_order

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        stored = STORED_ON_CPU if self.environment["device"] == "cpu" else STORED
        rest = iter(cells)
        items: dict[str, NDArray[np.float32]] = {}
        vectors: dict[str, NDArray[np.float32]] = {}
        while batch := list(itertools.islice(rest, self.read_ahead)):
            self._add(items, (cell.item.text for cell in batch))
            cells_of: dict[str, list[Cell]] = {}
            for cell in batch:
                cells_of.setdefault(cell.text, []).append(cell)
            # The long ones come first, so that the time that is left is not guessed too short.
            for part in _parts(sorted(cells_of, key=len, reverse=True), *stored):
                if len(vectors) > MOST_VECTORS:
                    vectors.clear()
                windows = {text: self.windows(text) for text in part}
                self._add(vectors, (window for of_text in windows.values() for window in of_text))
                yield [
                    (cell, self._answer(of_text, items[cell.item.text]))
                    for text in part
                    for of_text in [np.array([vectors[window] for window in windows[text]])]
                    for cell in cells_of[text]
                ]

    def windows(self, text: str) -> Sequence[str]:
        """Return the parts of a passage that an item is compared with."""
        return (text,)

    def _answer(self, vectors: NDArray[np.float32], of_item: NDArray[np.float32]) -> Answer:
        """Grade by the highest cosine of a passage's vectors, shape (vectors, dimension)."""
        products = np.multiply(vectors, of_item, dtype=np.float64)
        cosine = round(float(products.sum(axis=1).max()), 4)
        return Answer(bisect_right(self.cut_points, cosine), "ok", f"{cosine:.4f}")

    def _add(self, vectors: dict[str, NDArray[np.float32]], texts: Iterable[str]) -> None:
        """Embed the texts that have no vector yet."""
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            vectors.update(zip(new, self.embed(new), strict=True))

    @cached_property
    def _model(self) -> Any:
        of = (self.folder, self.device, self.dtype)
        return shared_model((load_model, *of), lambda: load_model(*of))


def probabilities(
    cosines: NDArray[np.float64], points: Sequence[float] = SOFT_POINTS, width: float = SOFT_WIDTH
) -> NDArray[np.float64]:
    """Return the probabilities of the ratings 0..5, shape (..., 6); NaN where the cosine is.

    P(rating >= r | cosine) = 1 / (1 + exp((point_r - cosine) / width)).
    """
    from scipy.special import expit

    edges = np.where(np.isnan(cosines), np.nan, 1.0)[..., None]
    inner = expit((cosines[..., None] - np.array(points)) / width)
    at_least = np.concatenate([edges, inner, 0 * edges], axis=-1)
    shares: NDArray[np.float64] = at_least[..., :-1] - at_least[..., 1:]
    return shares


def _cosines(answers: Sequence[str]) -> NDArray[np.float64]:
    """Return the cosines that stored answers are, NaN where one is none."""
    with suppress(ValueError):
        return np.array(answers, np.float64)
    cosines = np.full(len(answers), np.nan)
    for row, answer in enumerate(answers):
        with suppress(ValueError):
            cosines[row] = float(answer)
    return cosines


_missing = partial(missing_packages, ("sentence_transformers", "torch"), HOW_TO_GET)


def _check_installed() -> None:
    if missing := _missing():
        raise GraderError(f"the `embedding` grader cannot run: {missing}")


def load_model(folder: Path, device: str | None, dtype: str = "float32") -> Any:
    """Load the sentence-transformers model in a folder, on the best device if `device` is None."""
    _check_installed()
    if device is not None:
        check_device(device)
    _refuse_own_modules(folder)
    # A progress bar for the tensors of a small model is noise in a log.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return SentenceTransformer(
            str(folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": dtype},
        )
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).split("\n", 1)[0]
        raise GraderError(
            f"cannot be loaded as a sentence-transformers model: {reason}", path=folder
        ) from error


def _refuse_own_modules(folder: Path) -> None:
    """Refuse a model with own modules: sentence-transformers 5 imports them from a local folder."""
    path = folder / "modules.json"
    if not path.exists():
        return
    try:
        types = [str(module["type"]) for module in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise GraderError(f"this list of modules cannot be read: {error}", path=path) from None
    modules = [name for name in types if not name.startswith("sentence_transformers.")]
    if modules:
        raise GraderError(
            f"the module '{modules[0]}' is the model's own code, which is never run: choose another model",
            path=path,
        )


def _parts(texts: Iterable[str], characters: int, number: int | None = None) -> Iterator[list[str]]:
    """Yield parts of at most so many characters and texts, but at least one text; order kept."""
    part: list[str] = []
    size = 0
    for text in texts:
        size += len(text)
        if part and (len(part) == number or size > characters):
            yield part
            part, size = [], len(text)
        part.append(text)
    if part:
        yield part


def _reading(cut_points: Sequence[float]) -> dict[str, Any]:
    """Return how stored cosines are read; they have probabilities beside the built-in cut points alone."""
    if tuple(cut_points) != CUT_POINTS:
        return {"cosines": _cosines}
    return {"cosines": _cosines, "probabilities": lambda answers: probabilities(_cosines(answers))}


FACTORY = Factory(
    summary="cosine of passage and item in a sentence-embedding space, cut into 0..5 at points fitted on "
    "TREC DL 2019; tau with people's nDCG@10 leaderboard 0.88 there, 0.60 to 0.65 on Cranfield, "
    "Vaswani and CISI; favours runs of the same encoder",
    missing=lambda: _missing() or ("" if offline_folder() else f"no default model here: {HOW_TO_GET}"),
    create=EmbeddingGrader.create,
    standard=True,
    reading=lambda settings, _: _reading(settings.cut_points or CUT_POINTS),
)
