"""Vectors of texts and of their tokens, by the model of the `embedding` grader, in bfloat16."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.graders.embedding import load_model
from trecexam.graders.weights import OFFLINE_MODEL, config_digest, embedding_folder, weights_digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Texts that are encoded at once.
BATCH = 64


class EncodedText(NamedTuple):
    """A text as unit vectors: its own, shape (dimension,), and its tokens', shape (tokens, dimension)."""

    vector: NDArray[np.float32]
    tokens: NDArray[np.float32]


class TextEncoder:
    """Encodes texts with a sentence-transformers model in bfloat16, which halves what a CPU needs.

    Args:
        model: a folder (absolute or relative to `root`), a hub id, or None for the extra `offline`.
        root: of the track.
        revision: of the hub id; None for the newest one that is here.

    Raises:
        GraderError: the model is not here and cannot be fetched.
    """

    def __init__(
        self, model: str | None, root: Path, device: str | None = None, revision: str | None = None
    ) -> None:
        self.folder = embedding_folder(model, revision, root)
        self.name = model or OFFLINE_MODEL
        self.device = device

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """All that can change a vector, but for the machine's rounding."""
        return {
            "weights_sha256": weights_digest(self.folder),
            "config_sha256": config_digest(self.folder),
            "dtype": "bfloat16",
        }

    def encode(self, texts: Sequence[str]) -> Iterator[tuple[str, EncodedText]]:
        """Each text and what it is encoded as, the longest first; past the model's length they are cut."""
        import numpy as np
        import torch
        from torch.nn.functional import normalize

        ordered = sorted(texts, key=lambda text: (-len(text), text))
        for start in range(0, len(ordered), BATCH):
            batch = ordered[start : start + BATCH]
            rows = self._model.encode(
                batch, batch_size=BATCH, output_value=None, convert_to_numpy=False, show_progress_bar=False
            )
            for text, row in zip(batch, rows, strict=True):
                vector = normalize(row["sentence_embedding"].to(torch.float32), dim=0)
                # Shorter texts of a batch are padded.
                kept = row["token_embeddings"][row["attention_mask"].bool()]
                tokens = normalize(kept.to(torch.float32), dim=1)
                yield (
                    text,
                    EncodedText(
                        vector.cpu().numpy().astype(np.float32), tokens.cpu().numpy().astype(np.float32)
                    ),
                )

    @cached_property
    def _model(self) -> Any:
        return load_model(self.folder, self.device, dtype="bfloat16")
