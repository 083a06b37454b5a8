"""Vectors of texts that are the same, bit for bit, whatever other texts are encoded with them.

What decides a number's last bits, beside the text, is the shape of what is computed: how far a text is
padded, and how many rows a batch has. Here both are functions of the text's own length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from trecexam.graders.threads import several_at_once

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

#: Lengths are rounded up to a multiple of this many tokens.
STEP = 8
#: Tokens of a batch, padding counted. Larger ones are hardly faster on a CPU, and a
#: text that comes alone takes a whole batch.
BATCH_TOKENS = 256
#: The same elsewhere, where each step of a batch has to be started: not measured yet.
GPU_BATCH_TOKENS = 4096
#: Batches that are run at once on a CPU: with more of them Python itself would be waited for.
MOST_AT_ONCE = 4
#: Raised where the same libraries and settings give vectors other bits: kept ones are not mixed in.
COMPUTATION = 4
#: Texts that are tokenised at once.
TOKENISED = 512


class FixedShapes:
    """A sentence-transformers model that is run on batches of fixed shapes.

    A text of n tokens is padded to the next multiple of `STEP` above n, so that attention always has a mask;
    only a text as long as the model reads has none, and comes with its like. A batch has
    `BATCH_TOKENS` // length rows (on a GPU `GPU_BATCH_TOKENS`); where texts are fewer, they are repeated.
    Pooling and what follows is computed in float32.
    """

    def __init__(self, model: Any) -> None:
        """Takes over the model: its modules after the first get float32 numbers.

        Args:
            model: a `SentenceTransformer`. One that pads no texts, or at the left, or puts a prompt before
                each, encodes every text alone, which is slower.
        """
        import torch

        from trecexam.graders.activations import part_evenly
        from trecexam.graders.packed_linear import pack

        self._model = model.eval()
        self._language_model, *self._last = model
        self._pads = model.default_prompt_name is None and self._tokens(["a", "b c"]) is not None
        # Alone, a text's vector still depends on the number of threads.
        part_evenly(self._language_model)
        pack(self._language_model, (torch.float32, torch.bfloat16))
        if self._pads:
            for module in self._last:
                module.float()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension); texts past the model's length are cut at their end."""
        import numpy as np

        if not self._pads:
            alone = [
                self._model.encode([text], normalize_embeddings=True, show_progress_bar=False)
                for text in texts
            ]
            return np.concatenate(alone).astype(np.float32)
        order = sorted(range(len(texts)), key=lambda text_index: len(texts[text_index]))
        vectors: list[Vectors | None] = [None] * len(texts)
        for text_index, vector in self._encoded([texts[text_index] for text_index in order]):
            vectors[order[text_index]] = vector
        return np.array(vectors, np.float32)

    def _encoded(self, texts: Sequence[str]) -> Iterator[tuple[int, Vectors]]:
        """The place of each text, in order, with its unit vector."""
        for start in range(0, len(texts), TOKENISED):
            # Threads are as they were when a row is handed out.
            on_cpu = self._model.device.type == "cpu"
            with several_at_once(MOST_AT_ONCE if on_cpu else 1) as pool:
                rows = self._encode(list(texts[start : start + TOKENISED]), pool)
            yield from enumerate(rows, start)

    def _encode(self, texts: list[str], pool: ThreadPoolExecutor) -> list[Vectors]:
        features = self._tokens(texts)
        assert features is not None
        lengths = features["attention_mask"].sum(dim=1).tolist()
        rows_of: dict[tuple[int, bool], list[int]] = {}
        for row, length in enumerate(lengths):
            rows_of.setdefault(_shape(length, self._model.max_seq_length), []).append(row)
        batch_tokens = BATCH_TOKENS if self._model.device.type == "cpu" else GPU_BATCH_TOKENS
        batches: list[tuple[list[int], Future[Vectors]]] = []
        for (length, _), rows in rows_of.items():
            size = max(1, batch_tokens // length)
            for start in range(0, len(rows), size):
                batch = rows[start : start + size]
                filled = (batch * size)[:size]
                padded = {name: self._padded(name, of[filled], length) for name, of in features.items()}
                batches.append((batch, pool.submit(self._vectors, padded)))
        made: dict[int, Vectors] = {}
        for batch, done in batches:
            made.update(zip(batch, done.result(), strict=False))
        return [made[row] for row in range(len(texts))]

    def _tokens(self, texts: list[str]) -> dict[str, torch.Tensor] | None:
        """The features of texts, each of shape (texts, tokens); None where the model's are of other kinds."""
        model = self._model
        # `tokenize` is what it was called in older versions of sentence-transformers.
        made = (model.preprocess if hasattr(model, "preprocess") else model.tokenize)(texts)
        features = {name: of for name, of in made.items() if hasattr(of, "shape")}
        mask = features.get("attention_mask")
        if mask is None or any(of.shape != mask.shape for of in features.values()):
            return None
        # Padded at the left, a text's positions would be those of the longest one.
        return features if getattr(model.tokenizer, "padding_side", "") == "right" else None

    def _padded(self, name: str, rows: torch.Tensor, length: int) -> torch.Tensor:
        """Rows of features, cut or padded at the right to so many tokens."""
        from torch.nn.functional import pad

        filling = (self._model.tokenizer.pad_token_id or 0) if name == "input_ids" else 0
        return pad(rows[:, :length], (0, max(0, length - rows.shape[1])), value=filling)

    def _vectors(self, features: dict[str, torch.Tensor]) -> Vectors:
        return _unit(self._run(features)["sentence_embedding"][:, : self._model.truncate_dim])

    def _run(self, features: dict[str, torch.Tensor]) -> dict[str, Any]:
        import torch

        with torch.inference_mode():
            made: dict[str, Any] = self._language_model(
                {name: of.to(self._model.device) for name, of in features.items()}
            )
            for name, of in made.items():
                if isinstance(of, torch.Tensor) and of.is_floating_point():
                    made[name] = of.float()
            for module in self._last:
                made = module(made)
        return made


def _unit(rows: torch.Tensor) -> Vectors:
    """Rows of length 1."""
    from torch.nn.functional import normalize

    numbers: Vectors = normalize(rows.float(), dim=1).cpu().numpy()
    return numbers


def _shape(length: int, most: int | None) -> tuple[int, bool]:
    """How long a text of so many tokens is with its padding, and whether it has none."""
    padded = (length // STEP + 1) * STEP
    if most is not None and padded > most:
        return max(length, most), length >= most
    return padded, False
