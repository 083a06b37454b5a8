"""The kinds that ask about each text of the pool: rubrics, nuggets of responses, relevance as such."""

from __future__ import annotations

from trecexam.bank.model import QUERY
from trecexam.inputs.kind import Kind, MeasureFacts

#: Of the measures of `TrackConfig.measures`, those on items and not on labels, by how their names begin.
_ON_ITEMS = ("ECover", "Cover", "nCover", "alpha_nDCG")


def default_measures(facts: MeasureFacts) -> tuple[str, ...]:
    """The track's measures on rubric ratings, in leaderboard order; whatever has one default takes the first.

    The rule:

    1. `measures` of [scores], where trecexam.toml or the grader sets them, are all and come first to last.
    2. Else they are those of `TrackConfig.measures`, P first, and those that depend on the pool last. Where
       all runs are generated responses, those on items come first (Cover, nCover, alpha_nDCG), and those on
       labels last, P last of all: a response fills one rank of twenty or a few, so P@20 is 0.05 at best. A
       track with a ranked run keeps P first. No rule puts a measure that depends on the pool first.
    3. Where items of the bank have an importance, nuggetizer's `all_score` and `vital_score` of the first
       `depth` passages stand before these, whatever the runs are (`all_score` alone where no item is vital).
       On scales that are shorter than 0..5 an item counts from min_rating on, and not in part.
    4. Where items of the bank have weights, `compliance_score` stands before all, in the same way.
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
        names = [_nugget_score(facts, "compliance_score", ",weights='item'"), *names]
    return tuple(dict.fromkeys(names))


def nugget_scores(facts: MeasureFacts, *, always: bool = False) -> tuple[str, ...]:
    """Return `all_score`, and `vital_score` with a vital item; nothing without importances, but `always`."""
    if not (facts.bank.has_importance or always):
        return ()
    vital = (_nugget_score(facts, "vital_score", ",weights='vital'"),) if facts.bank.n_vital else ()
    return (_nugget_score(facts, "all_score", ""), *vital)


def _nugget_score(facts: MeasureFacts, name: str, weights: str) -> str:
    """Return nuggetizer's score, of full and partial assignments; on shorter scales Cover from min_rating."""
    cover = f"Cover(rel={facts.config.scores.min_rating}{weights})"
    return f"{name if facts.max_rating >= 5 else cover}@{facts.config.track.depth}"


#: How well a text answers each question, or covers each nugget, of its query's test bank.
RUBRIC = Kind(
    "rubric",
    frozenset({"question", "nugget"}),
    {},
    default_measures,
    lambda facts: (f"Cover(rel={facts.config.scores.min_rating})@{facts.config.track.depth}",),
)
#: Whether a response says each nugget of its query, wholly or in part, as TREC RAG assigns them.
NUGGETS = Kind(
    "nuggets",
    frozenset({"nugget"}),
    {"track": {"unit": "response"}, "grader": {"prompt": "NuggetAssign"}},
    default_measures,
    lambda facts: nugget_scores(facts, always=True),
)
#: How well a text answers its query, as UMBRELA and the prompts of its kind ask.
RELEVANCE = Kind(
    "relevance",
    frozenset({QUERY}),
    {"grader": {"prompt": "UMBRELA"}},
    default_measures,
    lambda _: ("nDCG@10",),
)
