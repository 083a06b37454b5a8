"""The kinds that ask about each text of the pool: rubrics, nuggets of responses, relevance as such."""

from __future__ import annotations

from trecexam.bank.model import QUERY
from trecexam.line.kind import Kind, MeasureFacts

#: Of the measures of `TrackConfig.measures`, those on items and not on labels, by how their names begin.
_ON_ITEMS = ("ECover", "Cover", "nCover", "alpha_nDCG")
#: nuggetizer's scores, where a full assignment is rated 5 and a partial one 3.
_NUGGETS = "rel=5,partial=3"


def default_measures(facts: MeasureFacts) -> tuple[str, ...]:
    """The track's measures on rubric ratings, in leaderboard order; whatever has one default takes the first.

    The rule:

    1. `measures` of [scores], where trecexam.toml or the grader sets them, are all and come first to last.
    2. Else they are those of `TrackConfig.measures`, P first, and those that depend on the pool last. Where
       all runs are generated responses, those on items come first (Cover, nCover, alpha_nDCG), and those on
       labels last, P last of all: a response fills one rank of twenty or a few, so P@20 is 0.05 at best. A
       track with a ranked run keeps P first. No rule puts a measure that depends on the pool first.
    3. Where items of the bank have an importance, A and V stand before these, whatever the runs are (A alone
       where no item is vital): nuggetizer's `all_score` and `vital_score`, of the first `depth` passages. On
       scales that are shorter than 0..5 an item counts from min_rating on, and not in part.
    4. Where items of the bank have weights, the compliance score stands before all, in the same way.
    """
    config, bank = facts.config, facts.bank
    names = config.measures()
    if config.scores.measures is not None:
        return tuple(names)
    if facts.responses_only:
        labels = [name for name in names if not name.startswith(_ON_ITEMS)]
        labels.sort(key=lambda name: name.startswith("P("))
        names = [*(name for name in names if name not in labels), *labels]
    names = [*nugget_scores(facts), *names]
    if bank.has_weights:
        names = [f"Cover({_counted(facts)},weights='item')@{config.track.depth}", *names]
    return tuple(dict.fromkeys(names))


def nugget_scores(facts: MeasureFacts, *, always: bool = False) -> tuple[str, ...]:
    """A and V; A alone where no item of the bank is vital, and none where none has an importance.

    Args:
        always: A also where no item has an importance.
    """
    if not (facts.bank.has_importance or always):
        return ()
    counted, depth = _counted(facts), facts.config.track.depth
    vital = (f"{counted},weights='vital'",) if facts.bank.n_vital else ()
    return tuple(f"Cover({each})@{depth}" for each in (counted, *vital))


def _counted(facts: MeasureFacts) -> str:
    """From which rating on an item counts, and from which on in part."""
    return _NUGGETS if facts.max_rating >= 5 else f"rel={facts.config.scores.min_rating}"


def _coverage(facts: MeasureFacts) -> tuple[str, ...]:
    return (f"Cover(rel={facts.config.scores.min_rating})@{facts.config.track.depth}",)


def _nugget_scores(facts: MeasureFacts) -> tuple[str, ...]:
    return nugget_scores(facts, always=True)


def _retrieval(_: MeasureFacts) -> tuple[str, ...]:
    return ("nDCG@10",)


#: How well a text answers each question, or covers each nugget, of its query's test bank.
RUBRIC = Kind("rubric", frozenset({"question", "nugget"}), {}, default_measures, _coverage)
#: Whether a response says each nugget of its query, wholly or in part, as TREC RAG assigns them.
NUGGETS = Kind(
    "nuggets",
    frozenset({"nugget"}),
    {"track": {"unit": "response"}, "grader": {"prompt": "NuggetAssign"}},
    default_measures,
    _nugget_scores,
)
#: How well a text answers its query, as UMBRELA and the prompts of its kind ask.
RELEVANCE = Kind(
    "relevance", frozenset({QUERY}), {"grader": {"prompt": "UMBRELA"}}, default_measures, _retrieval
)
