"""Judgments with other than four columns, and how they are told from runs."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from outside import outside

import converters
from converters import ConversionError, Qrel
from converters.trec_qrels import read_qrels
from converters.trec_run import read_run

SIX = "14 Q0 s1 3 0.9 auto\n14 Q0 s2 1 0.55 auto\n14 Q0 s3 3 1 auto\n15 Q0 s1 0 1e-3 auto\n"


def put(tmp_path: Path, content: str, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


def refused(path: Path) -> ConversionError:
    with pytest.raises(ConversionError) as caught:
        list(converters.read(path, "qrels"))
    return caught.value


def test_judgments_with_confidence_and_run_id_are_qrels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = put(tmp_path, SIX)
    assert converters.sniff(path) == "qrels"
    with caplog.at_level(logging.INFO, "converters"):
        assert list(converters.read(path)) == [
            Qrel("14", "s1", 3),
            Qrel("14", "s2", 1),
            Qrel("14", "s3", 3),
            Qrel("15", "s1", 0),
        ]
    assert caplog.messages == [f"{path}: confidences and run ids (columns 5 and 6) are left out"]


def test_real_judgments_with_confidences_are_recognised(tmp_path: Path) -> None:
    rows = list(converters.read(outside("rag25/umbrela.qwen3.5-9b.qrels.gz")))
    draw = random.Random(7)
    lines = (f"{q}\tQ0\t{d}\t{label}\t{draw.random():.3f}\tqwen\n" for q, d, label, _ in rows)
    path = put(tmp_path, "".join(lines))
    assert converters.sniff(path) == "qrels"
    assert list(converters.read(path)) == [row._replace(iteration="0") for row in rows]


def run_of(ranks: list[int], scores: list[float], queries: int = 2) -> str:
    return "".join(
        f"q{q} Q0 d{place} {rank} {score} tag\n"
        for q in range(queries)
        for place, (rank, score) in enumerate(zip(ranks, scores, strict=True))
    )


@pytest.mark.parametrize(
    ("ranks", "scores"),
    [
        ([1, 2, 3, 4], [0.9, 0.8, 0.7, 0.6]),
        ([0, 1, 2, 3], [0.9, 0.8, 0.7, 0.6]),
        ([4, 2, 3, 1], [0.6, 0.8, 0.7, 0.9]),
        ([1, 1, 1, 1], [0.6, 0.8, 0.7, 0.9]),
        ([0, 0, 0, 0], [1, 0.8, 0.7, 0]),
        ([1, 1, 2, 2], [0.9, 0.9, 0.7, 0.7]),
        ([1, 2, 3, 4, 5], [0.9, 0.8, 0.7, 0.6, 0.5]),
        ([3, 1, 3], [0.9, 1.2, 0.7]),
        ([1], [0.5]),
    ],
)
def test_short_runs_with_scores_below_1_are_still_runs(
    tmp_path: Path, ranks: list[int], scores: list[float]
) -> None:
    path = put(tmp_path, run_of(ranks, scores))
    assert converters.sniff(path) == "run"
    assert len(converters.read(path)) == 2 * len(ranks)


@given(st.data(), st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_a_run_with_ranks_is_never_recognised_as_judgments(
    tmp_path: Path, data: st.DataObject, depth: int, queries: int, shuffled: bool
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=depth, max_size=depth))
    lines = run_of(list(range(1, depth + 1)), sorted(scores, reverse=True), queries).splitlines()
    if shuffled:
        lines = data.draw(st.permutations(lines))
    assert converters.sniff(put(tmp_path, "\n".join(lines))) == "run"


@pytest.mark.parametrize("content", ["q1 Q0 d1 3 0.9 auto\n", "q1 Q0 d1 0 1 a\nq1 Q0 d2 0 0.5 a\n"])
def test_an_ambiguous_file_is_a_run_unless_the_format_is_given(tmp_path: Path, content: str) -> None:
    path = put(tmp_path, content)
    assert converters.sniff(path) == "run"
    assert {row.doc_id for row in converters.read(path, "qrels")} <= {"d1", "d2"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("14 Q0 s4 1 17.25 tag", "this looks like a run: column 5 is '17.25', and a confidence is in 0..1"),
        ("14 Q0 s4 1 nan tag", "the confidence (column 5) is not in 0..1: 'nan'"),
        ("14 Q0 s4 1 high tag", "the confidence (column 5) is not in 0..1: 'high'"),
        ("14 Q0 s4 x 0.5 tag", "the label (column 4) is not a whole number: 'x'"),
        ("14 Q0 s4 1", "has 4 columns, a qrels line has 6: query_id 0 doc_id label confidence run_id"),
        ("14 Q0 s4 1 0.5 a b", "has 7 columns, a qrels line has 6"),
        ("14 Q0 s2 2 0.5 other", "document 's2' is judged twice for query '14' (first on line 2); keep one"),
    ],
)
def test_a_bad_line_among_six_columns_is_reported(tmp_path: Path, line: str, reason: str) -> None:
    error = refused(put(tmp_path, SIX + line + "\n"))
    assert error.line == 5
    assert reason in error.reason


def test_a_line_of_six_columns_among_lines_of_four_is_rejected(tmp_path: Path) -> None:
    error = refused(put(tmp_path, "14 0 s9 1\n" + SIX))
    assert (error.line, error.reason) == (
        2,
        "has 6 columns, a qrels line has 4: query_id 0 doc_id label; also bad: lines 3, 4, 5",
    )


@pytest.mark.parametrize("delimiter", [" ", "\t"])
def test_prels_are_recognised_and_rejected_with_a_remedy(tmp_path: Path, delimiter: str) -> None:
    rows = ["20001 GX000-00-13 0 1 0.25", "20001 GX000-00-14 1 0 1.0"]
    path = put(tmp_path, "\n".join(row.replace(" ", delimiter) for row in rows))
    assert converters.sniff(path) == "qrels"
    error = refused(path)
    assert error.line == 1
    assert "a prels line (query_id doc_id label method probability)" in error.reason
    assert "awk '{print $1, 0, $2, $3}'" in error.reason


def test_other_files_with_five_columns_are_not_prels(tmp_path: Path) -> None:
    assert refused(put(tmp_path, "q1 0 d1 1 0.5\n")).reason.startswith("has 5 columns, a qrels line has 4")


def test_diversity_judgments_keep_their_subtopics(tmp_path: Path) -> None:
    path = put(tmp_path, "1 1 d1 1\n1 2 d1 0\n1 10 d1 1\n1 1 d2 -2\n")
    assert converters.sniff(path) == "qrels"
    rows = [
        Qrel("1", "d1", 1, "1"),
        Qrel("1", "d1", 0, "2"),
        Qrel("1", "d1", 1, "10"),
        Qrel("1", "d2", -2, "1"),
    ]
    assert list(converters.read(path)) == rows
    converters.write(reversed(rows), tmp_path / "again", "qrels")
    assert (tmp_path / "again").read_text() == "1 1 d1 1\n1 1 d2 -2\n1 2 d1 0\n1 10 d1 1\n"
    again = refused(put(tmp_path, "1 1 d1 1\n1 1 d1 0\n"))
    assert (again.line, "judged twice" in again.reason) == (2, True)


spaces = st.sampled_from([" ", " ", " ", "\t", "  ", "\x1f", "\xa0", "\v"])
ids = st.sampled_from(["q1", "q2", "é", "0", "1", "d1", "d2", "d\xa03", "\0", "\udcff"])
labels = st.sampled_from(["0", "1", "-2", "007", "+1", "1.0", "1000001", "123456789", "٣", "1_0"])
judgment = st.tuples(ids, spaces, ids, spaces, ids, spaces, labels).map("".join)
ends = st.sampled_from(["\n", "\n", "\n", "\n", "\r\n", "\n\n", " \n", "\0\n"])
plain = st.builds("q{} 0 d{} {}\n".format, st.integers(1, 2), st.integers(0, 99), st.integers(0, 3))
some_plain = st.lists(plain, max_size=4).map("".join)
#: Lines of which at most one differs from the usual form.
lines = st.tuples(some_plain, st.tuples(judgment, ends).map("".join) | st.just(""), some_plain).map("".join)


@given(lines, st.booleans(), st.sampled_from([b"", b"\xef\xbb\xbf"]))
@example("q1 0 d1 1000001\n", True, b"")
@example("q1 0 d1 1\nq1 0 \0 1\n", True, b"")
@example("q1 \u00a0 d1 1\nq2 0 d\u00a0x 1\n", True, b"")
def test_fast_and_slow_parsing_give_the_same_judgments(
    tmp_path: Path, content: str, whole: bool, before: bytes
) -> None:
    """A blank line makes the reader parse line by line."""
    outcomes = []
    path = tmp_path / "file"
    for blank in (b"", b"\n"):
        path.write_bytes(
            before + blank + (content if whole else content[:-1]).encode(errors="surrogateescape")
        )
        try:
            outcomes.append((list(converters.read(path, "qrels")), None, ""))
        except ConversionError as error:
            line = error.line and error.line - len(blank)
            outcomes.append(([], line, error.reason.partition("(")[0].partition("; also bad")[0]))
    assert outcomes[0] == outcomes[1]


def test_a_run_read_as_qrels_is_one_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("".join(f"q1 Q0 d{rank} {rank} {100 - rank}.5 bm25\n" for rank in range(1, 40)))
    with pytest.raises(ConversionError) as caught:
        list(read_qrels(path))
    assert str(caught.value).startswith(f"{path}:1: this looks like a run: column 5 is '99.5'")
    assert "also bad" not in str(caught.value)


def test_a_run_with_commas_is_told_to_use_spaces(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("q1,Q0,d1,1,2.0,bm25\n")
    with pytest.raises(ConversionError, match="columns are separated by commas: use spaces or tabs"):
        read_run(path)
