"""Support: scores for how well cited passages support a response's sentences.

The definitions are those of TREC RAG 2024 (Thakur et al., "Support Evaluation for the TREC 2024 RAG
Track", arXiv:2504.15205): full support weighs 1, partial support 0.5, none 0; weighted precision is the sum
of the weights by the number of sentences that cite, weighted recall by that of all sentences. With
one citation a sentence they are the track's; what follows is ours, as it names none of it:

- F1 is of each response, and a run's F1 is the mean of these, not of its mean precision and recall. A query
  that a run does not answer counts 0; the track averages over the topics that it judged.
- The track's first plan was to set aside sentences that need no citation (guidelines of July 2024). The paper
  does not, and neither do we: a greeting counts in recall.
- Sentences are the response's own; blank ones are none, a response of plain text is one without citations.
- A passage that a sentence cites twice is looked at once. An id that is in no list of references is looked
  up like others: without a text, it is one of those without a label.
- Where all citations are looked at, each is one of precision's, and of recall's a sentence has its best one.
- A citation without a label (out of range, of a passage without a text, not graded or not read) weighs 0, as
  trec_eval takes what is not judged: made-up citations gain nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: What the ratings 0, 1 and 2 (none, partial, full) weigh.
WEIGHTS = (0.0, 0.5, 1.0)
#: The names of the measures, in the order of `support_scores`.
SUPPORT = ("SupportP", "SupportR", "SupportF1")


def support_scores(sentences: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Weighted precision and recall of a response, and their harmonic mean, 0..1 each; 0 for no sentences.

    Args:
        sentences: of each sentence the weights of its citations that are looked at; empty where it has none.
    """
    citations = [weight for weights in sentences for weight in weights]
    precision = math.fsum(citations) / len(citations) if citations else 0.0
    recall = (
        math.fsum(max(weights, default=0.0) for weights in sentences) / len(sentences) if sentences else 0.0
    )
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0
