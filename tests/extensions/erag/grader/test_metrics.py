"""Metrics of outputs: worked examples, another implementation, and faulty functions."""

from __future__ import annotations

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
from trecexam.extensions.erag.grader import five
from trecexam.extensions.erag.metrics import METRICS, NoLabel, metric_of, scored

words = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "Cat", "mat."]), max_size=8).map(
    " ".join
)


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


def _kilt_f1(output: str, gold: str) -> float:
    """`_f1_score` of KILT's evaluation."""
    tokens, gold_tokens = _kilt_normalised(output).split(), _kilt_normalised(gold).split()
    same = sum((Counter(tokens) & Counter(gold_tokens)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(tokens), same / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


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
    best_rouge = 0.0
    for one in gold:
        found, wanted = output.lower().replace(".", "").split(), one.lower().replace(".", "").split()
        common = _lcs(found, wanted)
        if common:
            precision, recall = common / len(found), common / len(wanted)
            best_rouge = max(best_rouge, 2 * precision * recall / (precision + recall))
    assert METRICS["rouge-l"](output, tuple(gold)) == pytest.approx(best_rouge)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "returned nan"),
        (np.float64("nan"), "returned nan"),
        (math.inf, "returned inf"),
        (-0.1, "returned -0.1"),
        (1.5, "returned 1.5"),
        (10**400, "returned int"),
        ("0.5", "returned str"),
        (None, "returned NoneType"),
        (np.array([0.1, 0.2]), "returned ndarray"),
        (1 + 0j, "returned complex"),
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
        (True, 1.0),
        # Outside the bounds by rounding.
        *((1 + 1e-7, 1.0), (np.float32(1.0000001), 1.0), (-1e-9, 0.0)),
    ],
)
def test_numbers_of_every_type_are_accepted_and_clipped_to_the_bounds(value: Any, label: float) -> None:
    assert scored(lambda output, gold: value, "x", ("x",)) == label


def test_output_printed_by_a_metric_goes_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talks.py").write_text("print('made')\ndef f(o, g):\n    print('asked')\n    return 1\n")
    assert scored(metric_of("talks:f", tmp_path), "x", ("x",)) == 1
    assert capsys.readouterr() == ("", "made\nasked\n")


def test_a_function_is_searched_in_the_track_then_here_then_on_the_python_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    (track / "mine.py").write_text("def half(output, gold):\n    return 0.75\n")
    assert metric_of("mine:half", track)("", ()) == 0.75


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
