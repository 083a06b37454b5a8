"""Features of passages, named in `FEATURES`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.passages import Floats, Vectors

#: Constant of reciprocal rank fusion, as in Cormack, Clarke & Buettcher.
RRF = 60
#: Parameters of BM25, as in Lucene.
K1, B = 1.2, 0.75

_WORD = re.compile(r"[^\W_]+")
_NO_WORDS: Counter[str] = Counter()


def fusion(ranks: NDArray[np.int32], n: int) -> Floats:
    """Return log(1 + rank) of each passage by reciprocal rank fusion of the runs; ties have their mean rank.

    Each run adds 1 / (60 + rank) (Cormack, Clarke & Buettcher, "Reciprocal Rank Fusion outperforms Condorcet
    and individual Rank Learning Methods", SIGIR 2009).

    Args:
        ranks: as in `QueryPassages`. n: how many passages there are.
    """
    from scipy.stats import rankdata

    adds = np.broadcast_to(1 / (RRF + 1 + np.arange(ranks.shape[1])), ranks.shape)[ranks >= 0]
    # Rounded, so that the order of runs does not break ties.
    votes = np.round(np.bincount(ranks[ranks >= 0], adds, minlength=n), 9)
    return np.asarray(np.log1p(rankdata(-votes)))


def unretrieved(n: int) -> float:
    """Return the `fusion` feature of an unretrieved passage beside n retrieved ones."""
    return math.log(n + 2)


class Lexical:
    """BM25 over a collection of texts (Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and
    Beyond", 2009), in Lucene's form.

    Args:
        texts: the distinct texts of the collection.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._words = {text: Counter(words(text)) for text in texts}
        self._length = {text: sum(counts.values()) for text, counts in self._words.items()}
        self._found_in = Counter(word for counts in self._words.values() for word in counts)
        self._mean_length = sum(self._length.values()) / max(1, len(self._length)) or 1.0

    def scores(self, query: str, texts: Sequence[str]) -> Floats:
        """Return the BM25 scores of texts; 0 for a text outside of the collection."""
        scores = np.zeros(len(texts))
        for word, times in Counter(words(query)).items():
            n, n_with_word = len(self._words), self._found_in[word]
            weight = times * math.log(1 + (n - n_with_word + 0.5) / (n_with_word + 0.5))
            for at, text in enumerate(texts):
                if count := self._words.get(text, _NO_WORDS)[word]:
                    norm = 1 - B + B * self._length[text] / self._mean_length
                    scores[at] += weight * count * (K1 + 1) / (count + K1 * norm)
        return scores


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


def query_features(
    ranks: NDArray[np.int32],
    query: Vectors,
    passages: Vectors,
    texts: Sequence[str],
    lexical: Floats,
    ratings: Floats,
) -> tuple[Floats, Floats]:
    """Compute the features of a query's pooled passages, and of its background.

    All features except fusion are standardised over the pooled passages; unknown values (no text, no rating)
    become 0.

    Args:
        ranks: as of `QueryPassages`.
        query: a unit vector.
        passages: unit vectors of the pooled passages, then of the background; zeros without a text.
        texts, lexical: texts of the same passages ("" if missing), and BM25.
        ratings: a grader's mean rating of each pooled passage; NaN without one.

    Returns:
        Shapes (n_pooled, 5) and (n_background, 5), a column for each of `FEATURES`.
    """
    n_pooled, n_others = len(ratings), len(passages) - len(ratings)
    lengths = np.array([len(text) or np.nan for text in texts])
    columns = [
        np.concatenate([fusion(ranks, n_pooled), np.full(n_others, unretrieved(n_pooled))]),
        _standardised(np.where(lengths > 0, passages @ query, np.nan), n_pooled),
        _standardised(np.log1p(lengths), n_pooled),
        _standardised(np.where(lengths > 0, lexical, np.nan), n_pooled),
        _standardised(np.append(ratings, np.full(n_others, np.nan)), n_pooled),
    ]
    both = np.column_stack(columns).astype(np.float64)
    return both[:n_pooled], both[n_pooled:]


def _standardised(values: Floats, n_pooled: int) -> Floats:
    """Standardise by mean and standard deviation of the first known values; return 0 if all are equal."""
    finite = values[:n_pooled][~np.isnan(values[:n_pooled])].astype(np.float64)
    spread = float(finite.std()) if finite.size else 0.0
    # Rounding gives equal values a spread.
    if spread <= 1e-9 * max(1.0, float(np.abs(finite).max(initial=0))):
        return np.zeros(len(values))
    return np.asarray(np.nan_to_num((values - finite.mean()) / spread))
