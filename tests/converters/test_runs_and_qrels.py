from __future__ import annotations

import gzip
import logging
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from text_files import put

import converters
from converters import ConversionError, Qrel, Run
from converters.run import ordered
from converters.trec_run import _careful, _fast, _RefusedError, read_run


def rows(run: Run) -> list[tuple[str, str, int, float]]:
    return [(e.query_id, e.doc_id, e.rank, e.score) for e in run]


PLAIN = "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2 Q0 d1 1 1 tag\n"
#: Reads a run while signals arrive, with a handler like that of `trecexam watch`.
UNDER_SIGNALS = """\
import os, signal, sys, threading, time
from converters.trec_run import read_run

caught, done = [], threading.Event()
signal.signal(signal.SIGINT, lambda *args: caught.append(args))

def send():
    while not done.wait(0.002):
        os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=send, daemon=True).start()
while not caught:
    time.sleep(0.001)
n = len(caught)
runs = [read_run(sys.argv[1]) for _ in range(3)]
done.set()
print({len(run) for run in runs}, len(caught) > n)
"""
EXPECTED = [("q1", "d1", 1, 2.5), ("q1", "d2", 2, 1.5), ("q2", "d1", 1, 1.0)]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(" ", "\t"),
        PLAIN.replace(" ", "   "),
        "\n\n" + PLAIN.replace("\n", "\n\n"),
        PLAIN.replace("q1", "  q1"),
        PLAIN.replace(" tag", " tag extra columns here"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("2.5", "+2.5").replace("1.5", "15e-1"),
        "\ufeff" + PLAIN,
    ],
)
def test_any_white_space_and_extra_columns_are_accepted(tmp_path: Path, content: str) -> None:
    run = read_run(put(tmp_path, content))
    assert rows(run) == EXPECTED
    assert run.name == "tag"
    assert len(run) == 3
    assert rows(read_run(put(tmp_path, gzip.compress(content.encode()), "b.gz"))) == EXPECTED


@given(st.lists(st.sampled_from([1.0, 1 + 1e-9, 1 - 1e-9, 2e39, 1e39, math.inf, -math.inf]), min_size=1))
def test_a_query_is_counted_if_and_only_if_32_bits_give_another_order(scores: list[float]) -> None:
    entries = [("q", f"d{n * 7 % 10}{n}", score) for n, score in enumerate(scores)]
    run = Run.from_entries("r", entries)
    orders = []
    for number in (float, np.float32):
        with np.errstate(over="ignore"):
            orders.append(
                [d for _, d, _ in sorted(entries, key=lambda e: (number(e[2]), e[1]), reverse=True)]
            )
    assert run.ranking("q") == orders[0]
    assert run.n_reordered_in_32_bits == (orders[0] != orders[1])


def test_queries_may_be_interleaved_and_ids_keep_leading_zeros_quotes_and_hashes(tmp_path: Path) -> None:
    content = '007 Q0 "d" 1 1 t\n07 Q0 d#1 1 9 t\n007 Q0 NA 2 3 t\n07 Q0 null 2 8 t\n'
    run = read_run(put(tmp_path, content))
    assert run.query_ids == ("007", "07")
    # The tag of the last line is the name.
    assert read_run(put(tmp_path, "q1 Q0 d1 1 2 first\nq1 Q0 d2 2 1 last\n")).name == "last"
    assert (run.ranking("007"), run.ranking("07", 1)) == (["NA", '"d"'], ["d#1"])
    assert run.ranking("7") == []
    assert "07" in run
    assert "7" not in run


def test_the_order_equals_that_of_trec_eval(tmp_path: Path) -> None:
    import pytrec_eval

    rng = random.Random(5)
    for _ in range(20):
        docs = rng.sample([f"d{n}" for n in range(40)] + ["D1", "é", "#x", "10", "9"], 12)
        scores = {d: rng.choice([0.5, 0.5, 1.0, 2.5, -1.0, 3e38, math.inf, -math.inf]) for d in docs}
        path = put(tmp_path, "".join(f"q Q0 {d} 0 {s!r} t\n" for d, s in scores.items()))
        order = read_run(path).ranking("q")
        for rank, doc_id in enumerate(order, 1):
            found = pytrec_eval.RelevanceEvaluator({"q": {doc_id: 1}}, ["recip_rank"]).evaluate({"q": scores})
            assert found["q"]["recip_rank"] == pytest.approx(1 / rank)


token = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
score = st.floats(allow_nan=False) | st.sampled_from([0.0, 1.0, 1.0000000001, -2.5])
entries = st.lists(st.tuples(st.sampled_from(["q1", "02", "ü"]), token, score), min_size=1, max_size=40,
                   unique_by=lambda e: e[:2])  # fmt: skip


@given(entries, st.sampled_from([" ", "\t"]), st.booleans())
def test_the_fast_and_the_slow_parser_agree(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str, float]], space: str, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "agree.run"
    content = "".join(space.join((q, "Q0", d, "1", repr(s), "tag")) + "\n" for q, d, s in found).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    careful = ordered(*_careful(path))
    try:
        fast = ordered(*_fast(path))
    except _RefusedError:
        # Only unusual white space may make the fast parser reject a good file.
        assert any(set(d) & set("\t\v\f \0") for _, d, _ in found)
        return
    assert list(fast) == list(careful) == list(read_run(path))
    brute = sorted(found, key=lambda e: (e[2], e[1]))
    for query_id in careful.query_ids:
        assert careful.ranking(query_id) == [d for q, d, _ in reversed(brute) if q == query_id]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.text(max_size=20)), max_size=60))
def test_duplicates_are_found_and_only_duplicates(pairs: list[tuple[str, str]]) -> None:
    run = [(q, d, float(n)) for n, (q, d) in enumerate(pairs)]
    if len(set(pairs)) == len(pairs):
        assert len(Run.from_entries("t", run)) == len(pairs)
    else:
        with pytest.raises(ValueError, match="occurs twice"):
            Run.from_entries("t", run)
    with pytest.raises(ValueError, match="not a number"):
        Run.from_entries("t", [("q", "d", float("nan"))])


def test_a_signal_during_reading_reaches_its_handler_only(tmp_path: Path) -> None:
    path = put(tmp_path, "".join(f"q{n // 100} Q0 d{n} 1 {-n} tag\n" for n in range(30_000)))
    command = [sys.executable, "-c", UNDER_SIGNALS, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("{30000} True\n", "")


# Comment lines and labels of tables of floats, in runs and qrels.


RUN = "q1 Q0 b 1 3 S\nq1 Q0 a 2 2 S\n"
QRELS = "q1 0 a 1\nq1 0 b 0\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("plain", "commented", "n_comments"),
    [
        (RUN, f"# run of team\n{RUN}", 1),
        (RUN, f"#\n# q1 Q0 c 1 9 S\n  # x\n{RUN}#q2 Q0 d 1 1 S", 4),
        (RUN, "q1 Q0 b 1 3 S\n#q1 Q0 x 1 5 S\nq1 Q0 a 2 2 S\n", 1),
        (QRELS, f"# my judgments\n{QRELS}", 1),
        (QRELS, "#q1 0 x 1\nq1 0 a 1\n#q1 0 y 1\n# z\nq1 0 b 0\n   # indented\n", 4),
    ],
)
def test_comment_lines_are_skipped_and_counted(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    plain: str,
    commented: str,
    n_comments: int,
    packed: bool,
) -> None:
    expected, path = tmp_path / "plain", tmp_path / "commented"
    expected.write_text(plain)
    path.write_bytes(gzip.compress(commented.encode()) if packed else commented.encode())
    assert converters.sniff(path) == converters.sniff(expected)
    assert list(converters.read(path)) == list(converters.read(expected))
    lines = f"{n_comments} comment line{'s' * (n_comments > 1)}"
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: skipped {lines} ('#' first); trec_eval 9 takes none, and 10 not each: see `trecexam check`"
    ]


def test_a_comment_at_a_block_boundary_of_a_large_run_is_skipped(tmp_path: Path) -> None:
    lines = [f"q{n // 1000} Q0 doc{n % 1000:04} 1 {1000 - n % 1000} t\n" for n in range(200_000)]
    size = 4 * 1024 * 1024
    text = "".join(lines)
    # The comment's sign is the first byte of the second block.
    padding = size - text.rindex("\n", 0, size) - 1
    text = text.replace("Q0", "Q0" + "0" * padding, 1)
    assert text[size - 1] == "\n"
    (tmp_path / "x.run").write_text(f"{text[:size]}# here\n{text[size:]}")
    assert len(converters.read(tmp_path / "x.run", "run")) == len(lines)


@pytest.mark.parametrize("text", ["1.0", "1.", "1", "+1", "01.000"])
@pytest.mark.parametrize("line", ["q1 0 a {}\n", "query-id\tcorpus-id\tscore\nq1\ta\t{}\n"])
def test_whole_numbers_of_tables_of_floats_are_labels(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "x.qrels").write_text(line.format(text))
    assert [row.relevance for row in converters.read(tmp_path / "x.qrels", "qrels")] == [1]


@pytest.mark.parametrize("text", ["0.7", "1.5", "1e0", ".0", "1.0.0", "nan", "1_0"])
@pytest.mark.parametrize(
    ("line", "where"),
    [("q1 0 a {}\n", "(column 4)"), ("query-id\tcorpus-id\tscore\nq1\ta\t{}\n", "of document 'a'")],
)
def test_other_labels_are_refused_with_their_column(tmp_path: Path, text: str, line: str, where: str) -> None:
    (tmp_path / "x.qrels").write_text(line.format(text))
    with pytest.raises(converters.ConversionError) as caught:
        list(converters.read(tmp_path / "x.qrels", "qrels"))
    assert caught.value.reason == f"the label {where} is not a whole number: '{text}'"


# Judgments with other than four columns, and how they are told from runs.


SIX = "14 Q0 s1 3 0.9 auto\n14 Q0 s2 1 0.55 auto\n14 Q0 s3 3 1 auto\n15 Q0 s1 0 1e-3 auto\n"


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


def run_of(ranks: list[int], scores: list[float], queries: int = 2) -> str:
    return "".join(
        f"q{q} Q0 d{place} {rank} {score} tag\n"
        for q in range(queries)
        for place, (rank, score) in enumerate(zip(ranks, scores, strict=True))
    )


@given(st.data(), st.integers(1, 30), st.integers(1, 4), st.booleans())
def test_a_run_with_ranks_is_never_recognised_as_judgments(
    tmp_path: Path, data: st.DataObject, depth: int, queries: int, shuffled: bool
) -> None:
    scores = data.draw(st.lists(st.floats(0, 1), min_size=depth, max_size=depth))
    lines = run_of(list(range(1, depth + 1)), sorted(scores, reverse=True), queries).splitlines()
    if shuffled:
        lines = data.draw(st.permutations(lines))
    assert converters.sniff(put(tmp_path, "\n".join(lines))) == "run"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("14 Q0 s4 1 17.25 tag", "the confidence (column 5) is not in 0..1: '17.25'; is this a run?"),
        ("14 Q0 s4 1 high tag", "the confidence (column 5) is not in 0..1: 'high'"),
        ("14 Q0 s4 1", "has 4 columns, a qrels line has 6: query_id 0 doc_id label confidence run_id"),
        ("14 Q0 s4 1 0.5 a b", "has 7 columns, a qrels line has 6"),
        ("14 Q0 s2 2 0.5 other", "document 's2' is judged twice for query '14' (first on line 2); keep one"),
    ],
)
def test_a_bad_line_among_six_columns_is_reported(tmp_path: Path, line: str, reason: str) -> None:
    error = refused(put(tmp_path, SIX + line + "\n"))
    assert error.line == 5
    assert reason in error.reason


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
