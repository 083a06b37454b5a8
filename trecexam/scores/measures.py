"""Parses names of measures, with reasons for those that cannot be computed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

import ir_measures
from ir_measures import Measure
from ir_measures.measures.base import SumAgg
from ir_measures.providers.base import NOT_PROVIDED

from converters.records import Qrel
from trecexam.errors import MeasureError
from trecexam.scores.columns import supported
from trecexam.scores.columns.measures import MEASURES
from trecexam.scores.columns.measures.base import DIVERSITY as DIVERSITY
from trecexam.scores.columns.measures.base import check_parameters
from trecexam.scores.columns.measures.cover import NUGGET_SCORES  # registers Cover and nCover
from trecexam.scores.support import SUPPORT

#: Measures on the items of a test bank.
COVER = frozenset(("Cover", "nCover", "ECover"))
#: Measures from 0 to 1. Gains below 0 and weights of items below 0 are not among them.
_SHARES = frozenset((
    "P", "R", "AP", "RR", "Rprec", "Success", "Judged", "SetP", "SetR", "SetF", "IPrec", "Bpref", "infAP",
    "nDCG", "alpha_nDCG", "ERR", "RBP", "P_IA", "AP_IA", "StRecall", *SUPPORT, *COVER, *NUGGET_SCORES,
))  # fmt: skip
#: Measures of ir_measures' own providers that are divided by, or compared with, something of the pool: the
#: number of relevant passages or of items reached, or the best ranking. Those on columns declare it. All
#: others look at the run's own passages, and at the bank: P, RR, Success, Judged, Cover ...
_RELATIVE = frozenset(("Bpref", "Compat", "IPrec", "SetAP", "SetF", "infAP", *DIVERSITY - {"alpha_nDCG"}))
#: So many near names are said of a name that is unknown.
_NAMED = 5
#: Named where no name is near.
_USUAL = ("AP", "Cover", "P", "RR", "nDCG")
#: What the second column of plain qrels holds.
NO_SUBTOPIC = frozenset(("0", "Q0"))
#: A parameter's value that is a word without quotes, as in `weights=vital`; ir_measures wants quotes.
_BARE = re.compile(r"=\s*(?!(?:True|False|None)\b)([A-Za-z_][\w-]*)\s*(?=[,)])")
#: Takes labels up to 4 and numeric query ids alone, so that a 5 would stop an evaluation.
_UNUSED_PROVIDERS = frozenset(("gdeval",))


#: What the measures of citations are, see `trecexam.scores.support`.
_OF_CITATIONS = {
    "SupportP": "The mean weight of the citations of a response.",
    "SupportR": "The mean weight of the sentences of a response, 0 where one cites nothing.",
    "SupportF1": "The harmonic mean of SupportP and SupportR.",
}
# They have no provider, since no qrels have sentences and citations: `grades.run_grades` computes them.
for _name, _line in _OF_CITATIONS.items():
    _about = {"__doc__": f"{_line}\n\n.. cite.arxiv:: 2504.15205", "SHORT_DESC": _line}
    _made = type(_name, (Measure,), {"NAME": _name, "__name__": _name, **_about})
    ir_measures.measures.registry[_name] = _made()


def measure(name: str | Measure, *, official: bool = False) -> Measure:
    """The measure of this name, as ir_measures writes it: `nDCG@10`, `P(rel=4)@20`, `Cover(rel=4)@20`.

    Args:
        name: a name, or a measure, which is checked in the same way. ir_measures writes texts in quotes,
            `Cover(rel=4,weights='vital')@20`; here they are read without them, too. nuggetizer's names of
            its scores are names of Cover: `vital_score`, `strict_all_score@20`.
        official: the measure is for official judgments, which have no items.

    Raises:
        MeasureError: with the reason: not a measure's name (the nearest known one is named), a parameter
            that it doesn't take or lacks, or a measure that nothing installed here computes.
    """
    parsed = name if isinstance(name, Measure) else _parse(name)
    check_parameters(parsed)
    if parsed.NAME not in SUPPORT:
        _check_provider(parsed)
    if official and parsed.NAME in COVER.union(SUPPORT):
        of_support = parsed.NAME in SUPPORT
        needed = "responses and their citations" if of_support else "ratings of a test bank's items"
        raise MeasureError(f"{parsed} needs {needed}, which official judgments do not have")
    return parsed


def measures_on_qrels(names: Iterable[str | Measure], rows: Iterable[Qrel]) -> list[Measure]:
    """Parse the names of measures for official judgments.

    Raises:
        MeasureError: as `measure`, or a measure needs subtopics, which no row names.
    """
    measures = [measure(name, official=True) for name in names]
    diversity = next((each for each in measures if each.NAME in DIVERSITY), None)
    if diversity is not None and all(row.iteration in NO_SUBTOPIC for row in rows):
        raise MeasureError(
            f"{diversity} needs subtopics, and the second column of the official judgments, which would name "
            "them, is 0 in every row"
        )
    return measures


def is_share(name: str) -> bool:
    """Return True for a measure, or `GRADER:MEASURE`, with values from 0 to 1; False if unknown."""
    return _base(name) in _SHARES and "weights='item'" not in name and "compliance" not in name


def is_count(name: str) -> bool:
    """Return True for a measure that ir_measures sums over queries: NumQ, NumRel, NumRet."""
    known = ir_measures.measures.registry.get(_base(name))
    return known is not None and isinstance(known.aggregator(), SumAgg)


def _base(name: str) -> str:
    return name.rpartition(":")[2].partition("@")[0].partition("(")[0]


def at_min_rating(metric: Measure, min_rating: int, *, counts: bool) -> Measure | None:
    """Return the measure with another rating from which passages are relevant or reach an item.

    Cover and nCover, and all measures that take a label from which a passage is relevant, have it as
    `rel`. Diversity measures lose theirs: their subtopics are made with min_rating. Where labels count
    items (`counts`), they too are made with min_rating, and the other measures stay as they are. None where
    min_rating has no bearing on the measure, as on nDCG of labels that are ratings.
    """
    if metric.NAME in DIVERSITY:
        params = {key: value for key, value in metric.params.items() if key != "rel"}
        return type(metric)(**params)
    if metric.NAME not in COVER and counts:
        return metric
    rel = metric.SUPPORTED_PARAMS.get("rel")
    if rel is None or ("rel" not in metric.params and rel.default is NOT_PROVIDED):
        return None
    params = dict(metric.params)
    if params.get("partial") is not None and params["partial"] >= min_rating:
        # From there on an item has full credit.
        del params["partial"]
    return type(metric)(**{**params, "rel": min_rating})


def depends_on_pool(measure: Measure) -> bool:
    """Return True if a run's value can change with the other runs, with unchanged labels of its passages."""
    declared = MEASURES.get(measure.NAME or "")
    if declared is None:
        return measure.NAME in _RELATIVE
    depends = declared.depends_on_pool
    return bool(measure.params.get(depends)) if isinstance(depends, str) else depends


def pool_measures() -> tuple[str, ...]:
    """The names of all measures that depend on the pool, with the parameter that causes it, if any."""
    on_columns = (
        f"{each.name}({each.depends_on_pool}=True)" if isinstance(each.depends_on_pool, str) else each.name
        for each in MEASURES.values()
        if each.depends_on_pool
    )
    return tuple(sorted((*on_columns, *_RELATIVE)))


@lru_cache(1024)
def _parse(name: str) -> Measure:
    try:
        return ir_measures.parse_measure(_BARE.sub(r"='\1'", name.strip()))
    except NameError:
        raise MeasureError(f"unknown measure {name!r}; {_nearest(name)}") from None
    # Python's own parser reads it, to which thousands of words are too deep.
    except (ValueError, TypeError, MemoryError, RecursionError):
        hint = _from_trec_eval(name) or "write it as Name(key=value)@cutoff, like nDCG@10 or Cover(rel=4)@20"
        raise MeasureError(f"measure {name!r} cannot be read; {hint}") from None


def _nearest(name: str) -> str:
    trec = _from_trec_eval(name)
    if trec:
        return trec
    base = name.strip().split("@")[0].split("(")[0].strip()
    # Some measures have several names; one is enough.
    registry = sorted(ir_measures.measures.registry.items())
    names_by_key = {key.lower(): key if key in NUGGET_SCORES else each.NAME for key, each in registry}
    close = difflib.get_close_matches(base.lower(), names_by_key, n=2 * _NAMED, cutoff=0.5)
    # Nothing but the letters' case is wrong.
    close = [base.lower()] if base.lower() in names_by_key else close
    rest = name.strip().removeprefix(base)
    near = list(dict.fromkeys(_completed(names_by_key[key], rest) for key in close))[:_NAMED]
    if near:
        return f"did you mean {' or '.join(filter(None, (', '.join(near[:-1]), near[-1])))}?"
    n_others = len({each.NAME for _, each in registry}) - len(_USUAL)
    return f"the measures are {', '.join(_USUAL)} and {n_others} more of ir_measures"


def _completed(base: str, rest: str) -> str:
    """Return the measure with these parameters and this cutoff; its bare name where it takes no such ones."""
    try:
        measure(base + rest)
    except ValueError:
        return base
    return base + rest


def _from_trec_eval(name: str) -> str | None:
    """A hint if the name is one of trec_eval's, like `ndcg_cut_10` or `map`."""
    import pytrec_eval

    if name in pytrec_eval.supported_nicknames:
        return None
    try:
        parsed = ir_measures.parse_trec_measure(name)
    except (ValueError, TypeError):
        return None
    return f"this is trec_eval's name; write {parsed[0]}" if len(parsed) == 1 else None


def _check_provider(metric: Measure) -> None:
    if supported(metric):
        return
    able = [p for p in ir_measures.DefaultPipeline.providers if p.supports(metric)]
    if any(p.is_available() and p.NAME not in _UNUSED_PROVIDERS for p in able):
        return
    reason = "no provider of ir_measures computes it with these parameters"
    if any(p.NAME in _UNUSED_PROVIDERS for p in able):
        reason = "only gdeval computes it, which accepts only labels up to 4 and query ids that are numbers"
    missing = [p.install_instructions() for p in able if not p.is_available()]
    if any(missing):
        reason = f"what computes it is not installed: {' or '.join(filter(None, missing))}"
    raise MeasureError(f"{metric}: {reason}")
