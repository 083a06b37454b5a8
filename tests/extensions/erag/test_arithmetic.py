"""Metrics of outputs, and scores of lists by labels: other implementations, and faulty functions."""

from __future__ import annotations

import itertools
import math
import re
import string
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.errors import GraderError
from trecexam.extensions.erag.evaluation import query_correlations
from trecexam.extensions.erag.grader import five
from trecexam.extensions.erag.metrics import METRICS, NoLabel, metric_of, scored
from trecexam.extensions.erag.retrieval import FRACTIONAL, is_binary, measure_values, measures_of
from trecexam.scores.values import MeasureValues

WORDS = ["the", "cat", "sat", "on", "a", "mat", "Cat", "mat."]
words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("metric", "output", "gold", "value"),
    [
        ("accuracy", " SUPPORTS\n", ["SUPPORTS"], 1),
        ("accuracy", "supports", ["SUPPORTS"], 0),
        ("accuracy", "The cat", ["cat"], 0),
        # Values of rouge-score 0.1.2, RougeScorer(["rougeL"]), fmeasure.
        ("rouge-l", "police kill the gunman", ["police killed the gunman"], 0.75),
        ("rouge-l", "the gunman kill police", ["police killed the gunman"], 0.5),
        ("rouge-l", "The quick, brown fox!", ["quick_brown dog", "the brown-quick fox"], 0.75),
        ("rouge-l", "", ["x"], 0),
        ("rouge-l", "x", ["?!"], 0),
        ("rouge-l", "Übung macht", ["übung MACHT den"], 0.8),
    ],
)
def test_metrics_equal_worked_examples(metric: str, output: str, gold: list[str], value: float) -> None:
    assert METRICS[metric](output, tuple(gold)) == pytest.approx(value)


def _lcs(one: list[str], two: list[str]) -> int:
    if not one or not two:
        return 0
    if one[-1] == two[-1]:
        return 1 + _lcs(one[:-1], two[:-1])
    return max(_lcs(one[:-1], two), _lcs(one, two[:-1]))


def _kilt_normalised(text: str) -> str:
    """`normalize_answer` of KILT's evaluation (and of SQuAD 1's), step by step."""
    without_marks = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", without_marks).split())


def _f(common: int, found: int, wanted: int) -> float:
    """The harmonic mean of precision and recall."""
    precision, recall = common / max(found, 1), common / max(wanted, 1)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def _kilt_f1(output: str, gold: str) -> float:
    """`_f1_score` of KILT's evaluation."""
    tokens, gold_tokens = _kilt_normalised(output).split(), _kilt_normalised(gold).split()
    return _f(sum((Counter(tokens) & Counter(gold_tokens)).values()), len(tokens), len(gold_tokens))


texts = st.one_of(
    words,
    st.text(max_size=12),
    st.sampled_from(["", "  ", "AN.", "the", "a an", "?!", "a-n", "The Eiffel-Tower!", "eiffeltower"]),
)


@given(texts, st.lists(texts, min_size=1, max_size=3))
def test_em_and_f1_equal_kilt_on_any_text(output: str, gold: list[str]) -> None:
    """Petroni et al., NAACL 2021: `kilt/eval_downstream.py`, maximum over the gold outputs."""
    same = max(_kilt_normalised(output) == _kilt_normalised(each) for each in gold)
    assert METRICS["em"](output, tuple(gold)) == float(same)
    f1 = max(_kilt_f1(output, each) for each in gold)
    assert METRICS["f1"](output, tuple(gold)) == pytest.approx(f1, abs=1e-12)


@given(words, st.lists(words.filter(str.strip), min_size=1, max_size=3))
def test_rouge_l_equals_its_definition(output: str, gold: list[str]) -> None:
    found, *golds = (text.lower().replace(".", "").split() for text in (output, *gold))
    best = max(_f(_lcs(found, wanted), len(found), len(wanted)) for wanted in golds)
    assert METRICS["rouge-l"](output, tuple(gold)) == pytest.approx(best)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *((value, f"returned {value:g}") for value in (math.nan, np.float64("nan"), math.inf, -0.1, 1.5)),
        *((value, f"returned {type(value).__name__}") for value in (10**400, "0.5", None, np.ones(2), 1j)),
        (ZeroDivisionError("by zero"), "raised ZeroDivisionError: by zero"),
        (SystemExit(3), "raised SystemExit: 3"),
    ],
)
def test_an_invalid_score_is_reported_and_never_used(value: Any, reason: str) -> None:
    def metric(output: str, gold: tuple[str, ...]) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    label = scored(metric, "x", ("x",))
    assert isinstance(label, NoLabel)
    assert reason in label.reason


@pytest.mark.parametrize(
    ("value", "label"),
    [
        *((each, 0.25) for each in (0.25, Fraction(1, 4), np.float32(0.25), np.array(0.25))),
        # Outside the bounds by rounding.
        *((True, 1.0), (1 + 1e-7, 1.0), (np.float32(1.0000001), 1.0), (-1e-9, 0.0)),
    ],
)
def test_numbers_of_every_type_are_accepted_and_clipped_to_the_bounds(value: Any, label: float) -> None:
    assert scored(lambda output, gold: value, "x", ("x",)) == label


def test_a_function_is_searched_in_the_track_then_here_then_on_the_python_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    track, here = tmp_path / "track", tmp_path / "here"
    for folder, value in ((track, 0.1), (here, 0.2)):
        folder.mkdir()
        (folder / "mine.py").write_text(f"def half(output, gold):\n    return {value}\n")
    (here / "only.py").write_text("from mine import half\nclass In:\n    half = staticmethod(half)\n")
    monkeypatch.chdir(here)
    assert metric_of("mine:half", track)("", ()) == 0.1
    assert metric_of("mine:half", tmp_path)("", ()) == 0.2
    assert metric_of("only:In.half", tmp_path)("", ()) == 0.2
    assert metric_of("difflib:get_close_matches", track) is not None
    (track / "mine.py").write_text("print('made')\ndef half(o, g):\n    print('asked')\n    return 0.75\n")
    assert scored(metric_of("mine:half", track), "x", ("x",)) == 0.75
    assert capsys.readouterr() == ("", "made\nasked\n")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rouge", "no metric 'rouge'; give em, f1, rouge-l, accuracy"),
        ("nowhere:half", "metric 'nowhere:half' cannot be loaded as module:function: ModuleNotFoundError"),
        ("mine:other", "cannot be loaded as module:function: AttributeError"),
        ("mine:NUMBER", "metric 'mine:NUMBER' is not a function"),
        ("broken:half", "cannot be loaded as module:function: SyntaxError"),
        ("leaves:half", "cannot be loaded as module:function: SystemExit"),
        (":half", "metric ':half' cannot be loaded as module:function"),
        ("mine:", "metric 'mine:' is not a function"),
        ("", "no metric ''"),
    ],
)
def test_a_missing_metric_is_reported(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "mine.py").write_text("NUMBER = 3\n")
    (tmp_path / "broken.py").write_text("def half(\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(GraderError) as caught:
        metric_of(name, tmp_path)
    assert reason in str(caught.value)


def test_labels_become_ratings_with_halves_rounded_up() -> None:
    given_ = [0, 0.09, 0.1, 0.3, 0.5, 0.7, 0.89, 0.9, 1]
    assert [five(label) for label in given_] == [0, 0, 1, 2, 3, 4, 4, 5, 5]


DOCS = [f"d{n}" for n in range(7)]
BASES = ("P", "Success", "nDCG", "R", "AP", "RR")
rankings = st.lists(st.sampled_from(DOCS), unique=True, max_size=7)
binary = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 1.0]))
fractions = st.dictionaries(st.sampled_from(DOCS), st.sampled_from([0.0, 0.25, 1 / 3, 0.7, 1.0]), min_size=1)


def brute(base: str, k: int, ranking: list[str], labels: dict[str, float]) -> float:
    """The definitions, word for word; of AP and RR for labels of 0 and 1."""
    gains = [labels.get(doc_id, 0.0) for doc_id in ranking[:k]]
    if base == "P":
        return sum(gains) / k
    if base == "Success":
        return max([0.0, *gains])
    if base == "R":
        return sum(gains) / sum(labels.values()) if sum(labels.values()) else 0.0
    if base == "RR":
        return next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
    if base == "AP":
        hits = [sum(gains[:rank]) / rank for rank, gain in enumerate(gains, 1) if gain]
        return sum(hits) / sum(labels.values()) if hits else 0.0
    best = sorted(labels.values(), reverse=True)[:k]
    ideal = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, 1))
    found = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
    return found / ideal if ideal else 0.0


@given(
    st.one_of(st.just([{}, {}]), *(st.lists(each, min_size=2, max_size=2) for each in (binary, fractions))),
    st.lists(rankings, min_size=2, max_size=2),
    st.sampled_from([1, 2, 3, 5, 9]),
)
def test_values_are_the_definitions(labels: list[dict[str, float]], lists: list[list[str]], k: int) -> None:
    by_pair = {(f"q{n}", doc_id): label for n, of in enumerate(labels) for doc_id, label in of.items()}
    # With fractions, three measures are defined.
    bases = BASES if is_binary(by_pair) else FRACTIONAL
    query_ids, ranked = ["q0", "q1", "skipped"], {f"q{n}": ranking for n, ranking in enumerate(lists)}
    found = measure_values(by_pair, measures_of(f"{base}@{k}" for base in bases), query_ids, {"run": ranked})
    for base in bases:
        values = found.matrix(f"{base}@{k}")[0].tolist()
        expected = [brute(base, k, ranking, of) for ranking, of in zip(lists, labels, strict=True)]
        assert values == pytest.approx([*expected, 0], abs=1e-6 if bases is BASES else 1e-12)


def correlation(ours: dict[str, float], theirs: dict[str, float]) -> tuple[Any, ...]:
    """The number of queries, tau and rho of one run."""
    values = MeasureValues(("run",), tuple(ours), ("AP",), np.array([list(ours.values())])[:, :, None])
    (found,) = query_correlations(values, {("run", query_id): theirs[query_id] for query_id in theirs}).rows
    return found[2:]


def test_correlation_over_queries_uses_queries_with_both_scores() -> None:
    ours = {"q1": 0.1, "q2": 0.3, "q3": 0.3, "q4": 0.9, "q5": 0.5}
    theirs = {"q1": 1.0, "q2": 0.0, "q3": 3.0, "q4": 4.0, "q9": 7.0}
    n_queries, tau, rho = correlation(ours, theirs)
    assert n_queries == 4
    pairs = list(itertools.combinations(("q1", "q2", "q3", "q4"), 2))
    signs = [[np.sign(side[a] - side[b]) for a, b in pairs] for side in (ours, theirs)]
    assert tau == pytest.approx(np.dot(*signs) / math.sqrt(math.prod(np.dot(side, side) for side in signs)))
    # From the ranks' mean, 2.5.
    ranks = ([-1.5, 0, 0, 1.5], [-0.5, -1.5, 0.5, 1.5])
    assert rho == pytest.approx(np.dot(*ranks) / math.sqrt(math.prod(np.dot(side, side) for side in ranks)))


def test_an_undefined_correlation_is_empty() -> None:
    for ours, theirs in (
        ({"q1": 0.5, "q2": 0.5}, {"q1": 1.0, "q2": 2.0}),
        ({"q1": 0.5, "q2": 0.6}, {"q1": 1.0, "q2": 1.0}),
        ({"q1": 0.5}, {"q1": 1.0}),
        ({"q1": 0.5}, {}),
    ):
        assert correlation(ours, theirs)[1:] == (None, None)
