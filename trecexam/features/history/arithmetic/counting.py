"""Which changes of labels and items can change a measure's value."""

from __future__ import annotations

from dataclasses import dataclass

from trecexam.features.history.arithmetic.labels import LabelChange
from trecexam.scores.measures import COVER, DIVERSITY, measure
from trecexam.scores.weights import EQUAL

#: Measures for which a passage is relevant or not, from the label `rel` on, whatever else its label is.
_BINARY = frozenset(("P", "AP", "R", "RR", "Rprec", "Success", "SetP", "SetR", "SetF", "SetAP", "IPrec"))
#: Measures that see a run's own passages alone; others also count what there was to be found.
_LOCAL = frozenset(("P", "RR", "Success", "Cover"))


@dataclass(frozen=True)
class Counting:
    """What a measure counts.

    Attributes:
        items: the items that passages reach, and not their labels.
        rel: labels as below `rel`, or not; None where every label counts for itself.
        local: only a run's first passages (to the pool's depth), and no others of the query.
        importance: items by their importance.
    """

    items: bool = False
    rel: int | None = None
    local: bool = False
    importance: bool = False

    def decides(self, change: LabelChange) -> bool:
        """Whether this change can change the measure's value."""
        if self.items:
            return bool(change.gained or change.lost)
        if self.rel is not None:
            return (_label(change.before) >= self.rel) != (_label(change.after) >= self.rel)
        return change.before != change.after


def counting(name: str, min_rating: int, depth: int) -> Counting:
    """What the measure of this name counts.

    Args:
        name: as ir_measures prints it.
        min_rating: from this rating on, a passage reaches an item.
        depth: of the pool, in passages.

    Raises:
        ValueError: it is no measure's name.
    """
    parsed = measure(name)
    takes = parsed.SUPPORTED_PARAMS
    local = parsed.NAME in _LOCAL and "cutoff" in parsed.params and parsed["cutoff"] <= depth
    if parsed.NAME in COVER | DIVERSITY:
        # Which items are reached from other ratings on than min_rating, or in part, is not known here.
        known = parsed.NAME in DIVERSITY or (parsed["rel"] == min_rating and parsed["partial"] is None)
        # Nor is how probable it is.
        known = known and parsed.NAME != "ECover"
        weighted = parsed.NAME in COVER and parsed["weights"] != EQUAL
        return Counting(items=known, local=local, importance=weighted)
    if parsed.params.get("judged_only") or parsed.NAME not in _BINARY or "rel" not in takes:
        return Counting()
    return Counting(rel=parsed["rel"], local=local)


def _label(label: int | None) -> int:
    return 0 if label is None else label
