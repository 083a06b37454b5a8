"""Which measures a track has: those of its settings, else those that suit what it holds."""

from __future__ import annotations

from trecexam.bank.model import Bank
from trecexam.config import TrackConfig

#: Of the measures of `TrackConfig.measures`, those on items and not on labels, by how their names begin.
_ON_ITEMS = ("ECover", "Cover", "nCover", "alpha_nDCG")
#: nuggetizer's scores, where a full assignment is rated 5 and a partial one 3.
_NUGGETS = "rel=5,partial=3"


def default_measures(
    config: TrackConfig, bank: Bank, *, responses_only: bool, max_rating: int
) -> tuple[str, ...]:
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

    Args:
        config: on the scale of the grader.
        bank: what the grader asks about.
        responses_only: all runs are generated responses, and there is one.
        max_rating: the best of the grader's scale.
    """
    names = config.measures()
    if config.scores.measures is not None:
        return tuple(names)
    if responses_only:
        labels = [name for name in names if not name.startswith(_ON_ITEMS)]
        labels.sort(key=lambda name: name.startswith("P("))
        names = [*(name for name in names if name not in labels), *labels]
    counted = _NUGGETS if max_rating >= 5 else f"rel={config.scores.min_rating}"
    if bank.has_importance:
        vital = [f"{counted},weights='vital'"] if bank.n_vital else []
        names = [*(f"Cover({each})@{config.track.depth}" for each in (counted, *vital)), *names]
    if bank.has_weights:
        names = [f"Cover({counted},weights='item')@{config.track.depth}", *names]
    return tuple(dict.fromkeys(names))
