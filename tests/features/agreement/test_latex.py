from __future__ import annotations

import re
from dataclasses import replace

import pytest

from trecexam.features.agreement.arithmetic import Agreement, Thresholds, agreement, pair
from trecexam.features.agreement.latex import agreement_latex, escape
from trecexam.scores.kappa import Kappa


@pytest.fixture
def found() -> Agreement:
    labels = {"q1": {"a": 5, "b": 0, "c": 2, "d": 5}, "q2": {"a": 4, "b": 0}}
    judged = {"q1": {"a": 2, "b": -1, "c": 1, "d": 2}, "q2": {"a": 3, "b": 0}}
    return agreement(pair(labels, judged), Thresholds(4, 1, 2), 5, (-1, 0, 1, 2, 3))


def columns(spec: str) -> int:
    return len(re.sub(r"[^lrc]", "", spec))


def width(row: str) -> int:
    spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return len(re.split(r"(?<!\\)&", row)) + sum(n - 1 for n in spans)


def test_every_row_has_the_columns_of_its_table(found: Agreement) -> None:
    text = agreement_latex([found], "my track")
    tables = re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", text, re.DOTALL)
    assert len(tables) == 3
    for spec, body in tables:
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len(rows) >= 5
        assert {width(row) for row in rows} == {columns(spec)}
        assert re.findall(r"\\(top|mid|bottom)rule", body) == ["top", "mid", "mid", "bottom"]
        rule = re.search(r"\\cmidrule\(lr\)\{2-(\d+)\}", body)
        assert rule
        # Judgments stand between the label, and the total and kappa.
        assert int(rule[1]) == columns(spec) - 2


def test_what_is_opened_is_closed(found: Agreement) -> None:
    text = agreement_latex([found, found], "100% of {a_track} \\ $x$")
    for line in text.splitlines():
        bare = re.sub(r"\\[{}$]", "", line)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == ["table", "tabular", "tabular", "tabular"] * 2
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", text))


def test_the_paired_judgment_is_framed_and_kappa_beside_it(found: Agreement) -> None:
    lines = agreement_latex([found], "t").splitlines()
    five = next(line for line in lines if line.startswith("$5$"))
    assert re.fullmatch(r"\$5\$ & \\fbox\{0\} & 2 & 0 & 0 & 0 & 2 & \$-?\d\.\d\d\$.* \\\\", five)
    assert any(line.startswith(r"Label & $3$ & $2$ & $1$ & $0$ & $-1$") for line in lines)
    assert any(line.startswith(r"$\geq 4$ &") for line in lines)
    assert any(line.startswith(r"$1$--$3$ &") for line in lines)


def test_kappa_is_never_minus_nought(found: Agreement) -> None:
    binary = replace(found.binary, kappa=Kappa(-0.001, -0.12, 0.004))
    text = agreement_latex([replace(found, binary=binary)], "t")
    assert "$0.00$ [$-0.12$, $0.00$]" in text


def test_where_there_is_no_kappa_there_is_nothing() -> None:
    one = agreement(pair({"q": {"a": 1}}, {"q": {"a": 1}}), Thresholds(1, 1, 1), 5, (0, 1))
    assert "Total & 1 & 0 & 1 &  \\\\" in agreement_latex([one], "t")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("a_b & 5% #1", r"a\_b \& 5\% \#1"),
        ("x{y}$z", r"x\{y\}\$z"),
        ("back\\slash~^", r"back\textbackslash{}slash\textasciitilde{}\textasciicircum{}"),
        ("two\nlines", "two lines"),
    ],
)
def test_names_are_printed_as_they_are(name: str, expected: str) -> None:
    assert escape(name) == expected
