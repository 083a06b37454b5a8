from __future__ import annotations

import ctypes
import gzip
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import pytrec_eval
from hypothesis import example, given
from hypothesis import strategies as st
from support import Terminal, printed
from text_files import put

import converters
from converters import ConversionError
from trecexam.extensions.check import mending
from trecexam.extensions.check.preflight import Kind, check_file, kind_of
from trecexam.extensions.check.trec_eval_rules import Finding, atof, atol, takes

Capture = pytest.CaptureFixture[str]
TIED = "q1 Q0 a 1 2 t\nq1 Q0 b 2 2 t\n"
BROKEN = "q1 Q0 a 1 2 t\nq1 Q0 a 2 1 t\n"
RUN = "q1 Q0 a 1 3 t\nq1 Q0 b 2 2 t\n"
QRELS = "q1 0 a 1\nq1 0 b 0\n"
BOTH = (9, 10)


def findings(path: Path, kind: Kind, **ids: list[bytes]) -> tuple[Finding, ...]:
    return check_file(path, kind, **ids).findings


def mended(path: Path, kind: Kind, version: int = 10) -> bytes:
    return mending.mended(check_file(path, kind), version)


def test_the_status_says_whether_the_file_is_accepted_and_the_table_names_each_line(
    tmp_path: Path, capsys: Capture
) -> None:
    out, err = printed(capsys, "check", put(tmp_path, TIED, "my.run"))
    header, row = (line.split("\t") for line in out.splitlines())
    assert header == ["line", "severity", "trec_eval", "reason"]
    assert row[:3] == ["2", "warning", "9, 10"]
    assert "trec_eval 9 accepts this run file" in err
    out, err = printed(capsys, "check", put(tmp_path, BROKEN, "my.run"), status=1)
    assert out.splitlines()[1].startswith("2\tfatal\t9, 10\tdocno 'a' occurs twice")
    assert "trec_eval 10 rejects this run file" in err
    assert "1,233 more" in printed(capsys, "check", put(tmp_path, "q1\n" * 1234, "my.run"), status=1).out


def test_version_and_type_of_the_file_are_options(tmp_path: Path, capsys: Capture) -> None:
    path = put(tmp_path, "# by hand\nq1 0 a 1\n", "q.run")
    printed(capsys, "check", path, status=1)
    printed(capsys, "check", path, "--trec-eval", "9", status=1)
    out, err = printed(capsys, "check", path, "--trec-eval", "10")
    assert out.count("\n") == 1
    assert "trec_eval 9" not in err
    assert "has 4 columns" in printed(capsys, "check", path, "--as", "run", status=1).out


def test_fix_writes_an_accepted_file_and_says_what_it_mended(tmp_path: Path, capsys: Capture) -> None:
    fixed = tmp_path / "fixed.run"
    path = put(tmp_path, BROKEN + "# c\nq1 Q0 a 3 1 t\nq1 Q0 b# 3 1\n", "my.run")
    _, err = printed(capsys, "check", path, "--fix", fixed, status=1)
    first, *_ = err.splitlines()
    assert first == (
        f"{fixed}: written, 2 lines; both versions accept it; mended: duplicate (2), comment (1), ties (1), "
        "too few columns (1)"
    )
    assert printed(capsys, "check", fixed, "--trec-eval", "9").out.count("\n") == 1
    again = tmp_path / "again.run"
    value = json.loads(printed(capsys, "check", fixed, "--fix", again, "--json").out)
    assert [row["reason"] for row in value["findings"]] == [
        "'#' inside: trec_eval 10 reserves no memory for such lines, and may crash"
    ]
    assert "mended: nothing" in value["notes"][0]
    assert again.read_bytes() == fixed.read_bytes()


def test_scores_with_a_decimal_comma_are_named_and_never_cut(
    tmp_path: Path, capsys: Capture, on_terminal: Terminal
) -> None:
    path = put(tmp_path, "q,1 Q0 a,0 1 10,5 t\nq,1 Q0 b 2 10,25 t\nq,1 Q0 c 3 10 t\n", "my.run")
    fixed = tmp_path / "fixed"
    out, err = printed(capsys, "check", path, status=1)
    reason = "the score '10,5' has a decimal comma: it is read as 10 (and 1 more of this kind)"
    assert f"1\tsilent\t9, 10\t{reason}\n" in out
    assert "my.run: accepted, but trec_eval reads 2 scores wrongly; to write points: awk " in err
    with on_terminal():
        assert reason in " ".join(printed(capsys, "check", path, status=1).out.split())
    err = printed(capsys, "check", path, "--fix", fixed, status=2).err
    assert not fixed.exists()
    assert "my.run:1: nothing was written: the score '10,5' has a decimal comma" in err
    # The command in the message keeps the whole score, and commas of ids.
    subprocess.run(err.partition("to write points: ")[2], shell=True, check=True, cwd=tmp_path)
    points = tmp_path / "points.run"
    assert points.read_text() == path.read_text().replace("10,", "10.")
    printed(capsys, "check", points, "--fix", fixed)
    assert [row.score for row in converters.read(fixed, "run")] == [10.5, 10.25, 10.0]


def test_fix_overwrites_no_file(tmp_path: Path, capsys: Capture) -> None:
    path, other = put(tmp_path, TIED, "my.run"), put(tmp_path, "mine\n", "other")
    (tmp_path / "link").hardlink_to(path)
    for output, reason in (
        (path, "is an input of this command"),
        (tmp_path / "link", "is an input of this command"),
        (other, "other content"),
        (tmp_path / "x.gz", "without .gz"),
    ):
        assert reason in printed(capsys, "check", path, "--fix", output, status=2).err
    assert (path.read_text(), other.read_text()) == (TIED, "mine\n")
    for _ in range(2):
        printed(capsys, "check", path, "--fix", tmp_path / "new")


def test_with_a_track_unknown_topics_and_docnos_are_reported(
    graded: Path, tmp_path: Path, capsys: Capture
) -> None:
    def reported(text: str | bytes, name: str, status: int = 0) -> str:
        path = put(tmp_path, text, name)
        return str(printed(capsys, "check", path, "--track", graded, status=status).out)

    good = next(iter((graded / "runs").glob("*.run"))).read_bytes()
    assert reported(good, "my.run").count("\n") == 1
    known = good.split()[2].decode()
    out = reported(f"q1 Q0 {known} 1 1 t\nx Q0 y 1 1 t\n", "my.run")
    assert "topic 'x' is not in the track" in out
    assert "docno 'y' is not in the track" in out
    assert "judged topic 'q2' is missing" in out
    assert "the qrels have none of its topics" in reported(f"x Q0 {known} 1 1 t\n", "my.run", status=1)
    assert reported("x 0 y 1\n", "x.qrels").count("is not in the track") == 2


@pytest.mark.parametrize("content", ['{"q1": {"d1": 1.5}}', "qid,docno,score\nq1,d1,1.5\n"])
def test_json_and_tables_are_rejected_and_nothing_is_fixed(
    tmp_path: Path, capsys: Capture, content: str
) -> None:
    path, fixed = put(tmp_path, content, "x.run"), tmp_path / "fixed.run"
    assert f"trecexam convert {path} OUT --to run" in printed(capsys, "check", path, status=1).out
    printed(capsys, "check", path, "--fix", fixed, status=2)
    assert not fixed.exists()


# Predictions of what trec_eval does with a file, and files fixed so that it accepts them.


def summary(path: Path, kind: Kind, **ids: list[bytes]) -> list[tuple[int | None, str, tuple[int, ...], str]]:
    return [(found.line, found.severity, found.versions, found.kind) for found in findings(path, kind, **ids)]


PREDICTED: dict[Kind, list[tuple[str, list[Any]]]] = {
    "run": [
        (RUN, []),
        ("\n" + RUN + " \t\n", []),
        ("  q1\tQ0   a 9 -1e3 t\r\n", []),
        ("q1 Q0 a 1 3\n", [(1, "fatal", BOTH, "too few columns")]),
        (RUN + "q1 Q0 c 3 1 t and more\n", [(3, "silent", BOTH, "extra columns")]),
        (RUN + "q1 Q0 c 3 high t\n", [(3, "silent", BOTH, "score not a number")]),
        (RUN + "q1 Q0 c 3 1,5 t\n", [(3, "silent", BOTH, "decimal comma")]),
        (RUN + "q1 Q0 a 3 1 t\n", [(3, "fatal", BOTH, "duplicate")]),
        (RUN + "q1 Q0 c 3 2 t\n", [(3, "warning", BOTH, "ties")]),
        (RUN + "q1 Q0 c 3 1.99999999 t\n", [(3, "silent", (9,), "ties past float precision")]),
        ("q1 Q0 a 1 1e300 t\nq1 Q0 b 2 1e299 t\n", [(2, "silent", (9,), "ties past float precision")]),
        (RUN + "q1 Q0 c 3 2.5 t\n", [(3, "warning", BOTH, "scores against ranks")]),
        ("q1 Q0 a 9 2 t\nq1 Q0 b 8 1 t\n", [(2, "warning", BOTH, "scores against ranks")]),
        ("q1 Q0 a - 1 t\nq1 Q0 b 8 2 t\n", []),
        (RUN + "q1 Q0 c 3 1 u\n", [(3, "warning", BOTH, "mixed run ids")]),
        (RUN + "q1 Q0 c#0 3 1 t\n", [(3, "warning", (10,), "number sign")]),
        ("# made by me\n" + RUN, [(1, "fatal", (9,), "comment")]),
        ("# five words and the mark\n" + RUN, [(1, "silent", (9,), "comment as entry")]),
        ("\ufeff" + RUN, [(1, "silent", BOTH, "byte-order mark")]),
        ("q1 Q0 a 1 2 t\rq1 Q0 b 2 1 t\r", [(1, "silent", BOTH, "extra columns")]),
        ("", [(None, "fatal", BOTH, "empty")]),
        ("\n\n", [(None, "fatal", BOTH, "empty")]),
        ("q1 Q0 a 1 3 t\nq1 Q0 \0 2 2 t\n", [(2, "fatal", BOTH, "unreadable")]),
    ],
    "qrels": [
        (QRELS, []),
        ("q1 0 a 2.7\n", [(1, "silent", BOTH, "label no whole number")]),
        ("q1 0 a x\n", [(1, "silent", BOTH, "label no whole number")]),
        ("q1 0 a\n", [(1, "fatal", BOTH, "malformed")]),
        ("q1 0 a 1 2\n", [(1, "fatal", BOTH, "malformed")]),
        (QRELS + "\n", [(3, "fatal", BOTH, "malformed")]),
        (QRELS + "q1 1 a 1\n", [(3, "fatal", BOTH, "duplicate")]),
        (QRELS + "q1 0 c -1\n", [(3, "silent", BOTH, "not judged")]),
        ("q1 0 c -1\n", [(1, "silent", BOTH, "not judged"), (1, "fatal", BOTH, "only negative labels")]),
        ("q1 0 c 99999999999999999999\n", [(1, "fatal", BOTH, "label too high")]),
        ("# by hand\n" + QRELS, [(1, "fatal", (9,), "comment")]),
        ("# all by hand\n" + QRELS, [(1, "silent", (9,), "comment as entry")]),
        (
            "# by hand\n# twice\n" + QRELS,
            [(1, "fatal", (9,), "comment"), (2, "fatal", BOTH, "second comment")],
        ),
        (QRELS + "# by hand\n", [(3, "fatal", (9,), "comment"), (3, "fatal", (10,), "last comment")]),
        ("", [(None, "fatal", BOTH, "empty")]),
    ],
}


@pytest.mark.parametrize(
    ("kind", "text", "expected"), [(kind, *row) for kind, rows in PREDICTED.items() for row in rows]
)
def test_findings_predict_what_trec_eval_does(
    tmp_path: Path, kind: Kind, text: str, expected: list[Any]
) -> None:
    found = summary(put(tmp_path, text), kind)
    assert [entry for entry in found if entry[3] != "carriage return"] == expected
    assert ("\rq" in text) == any(entry[3] == "carriage return" for entry in found)


def test_gzip_is_rejected_and_its_content_is_checked(tmp_path: Path) -> None:
    path = put(tmp_path, gzip.compress((RUN + "q1\n").encode()))
    assert summary(path, "run") == [(None, "fatal", BOTH, "gzip"), (3, "fatal", BOTH, "too few columns")]


def test_a_missing_judged_topic_stops_trec_eval_10_and_no_common_topic_stops_both(tmp_path: Path) -> None:
    path = put(tmp_path, RUN)
    assert summary(path, "run", judged=[b"q1", b"q2"]) == [(None, "warning", (10,), "missing topic")]
    assert summary(path, "run", judged=[b"q2", b"q3"]) == [(None, "fatal", BOTH, "no common topic")]


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        (RUN, "x", "run"),
        (QRELS, "x", "qrels"),
        ("# a comment\n" + QRELS, "x", "qrels"),
        ("# a comment of six words here\n" + RUN, "x", "run"),
        ("\ufeff" + QRELS, "x", "qrels"),
        ("", "my.run", "run"),
        ("\0", "my.qrels", "qrels"),
        ('{"q1": {"d1": 1}}', "x.json", "qrels"),
        ('{"q1": {"d1": 1.5}}', "x.json", "run"),
    ],
)
def test_runs_and_qrels_are_told_apart(tmp_path: Path, text: str, name: str, kind: str) -> None:
    assert kind_of(put(tmp_path, text, name)) == kind


@pytest.mark.parametrize("text", ["", "\0", "what is this?\n", '{"a": 1}\n'])
def test_a_file_that_is_neither_is_rejected(tmp_path: Path, capsys: Capture, text: str) -> None:
    err = printed(capsys, "check", put(tmp_path, text), status=2).err
    assert "add --as run or --as qrels" in err


number_text = st.one_of(
    st.text(st.sampled_from("0123456789+-.eExXpPaAbBnNfFiItTyY_()"), max_size=12).map(str.encode),
    st.floats().map(lambda value: repr(value).encode()),
    st.integers().map(lambda value: str(value).encode()),
)


@given(number_text)
@example(b"0x")
@example(b"0x1p999999")
@example(b"-0X.8P1z")
@example(b"1e+")
@example(b"nan(1")
@example(b"infinit")
@example(b"-99999999999999999999999")
@example(b"1" + b"0" * 5000)
def test_numbers_are_parsed_as_in_c(text: bytes) -> None:
    libc = ctypes.CDLL(None)
    libc.atof.restype, libc.atol.restype = ctypes.c_double, ctypes.c_long
    expected, value = libc.atof(text), atof(text)[0]
    assert value == expected or (math.isnan(value) and math.isnan(expected))
    assert max(atol(text)[0], -(2**63)) in (libc.atol(text), libc.atol(text) + 1)


def values(qrels: bytes, run: bytes) -> Any:
    """The values that trec_eval 9 (pytrec_eval) computes from the text of two files."""
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for topic, _, doc, label in (line.split() for line in qrels.splitlines()):
        judged.setdefault(topic.decode(), {})[doc.decode()] = atol(label)[0]
    for topic, _, doc, _, score, *_ in (line.split() for line in run.splitlines()):
        ranked.setdefault(topic.decode(), {})[doc.decode()] = atof(score)[0]
    measures = {"map", "ndcg", "ndcg_cut.3", "P.2", "recip_rank", "bpref"}
    return pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(ranked)


docnos = st.lists(st.sampled_from([f"d{n}" for n in range(12)] + ["D1", "é"]), min_size=1, unique=True)
close = st.one_of(
    st.sampled_from(
        ["0", "-0.0", "1", "1.00000001", "1.0000001", "x", "1e-50", "3e38", "-3.4028235e38", "1e39"]
    ),
    st.floats(allow_nan=False).map(repr),
    st.floats(0, 1, width=16).map(repr),
)


@given(st.data(), docnos, st.sampled_from([9, 10]))
def test_a_fixed_run_has_the_same_scores(
    tmp_path: Path, data: st.DataObject, docs: list[str], version: int
) -> None:
    scores = data.draw(st.lists(close, min_size=len(docs), max_size=len(docs)))
    lines = [f"q1 Q0 {doc} 1 {score} t" for doc, score in zip(docs, scores, strict=True)]
    path = put(tmp_path, "\n".join(lines) + "\n")
    fixed = mended(path, "run", version)
    qrels = "".join(f"q1 0 {doc} {len(doc) + n % 3 - 1}\n" for n, doc in enumerate(sorted(docs)))
    if version == 9:
        assert values(qrels.encode(), fixed) == values(qrels.encode(), path.read_bytes())
    # Version 10 keeps doubles; there is no binding for it, so its order is computed by naive code.
    ordered = sorted(zip(docs, scores, strict=True), key=lambda row: row[0].encode(), reverse=True)
    if version == 10:
        ordered.sort(key=lambda row: -atof(row[1].encode())[0])
        assert [line.split()[2].decode() for line in fixed.splitlines()] == [doc for doc, _ in ordered]
    again = put(tmp_path, fixed, "fixed")
    assert not {"ties", "ties past float precision"} & {found.kind for found in findings(again, "run")}
    assert next(iter(converters.read(again, "run"))).rank == 1


def test_files_are_fixed_as_documented(tmp_path: Path) -> None:
    path = put(tmp_path, "q Q0 a 1 2 t\nq Q0 b 2 2 t\nq Q0 c 3 1.5 t\nq Q0 d 4 9 t\n")
    assert mended(path, "run") == (b"q Q0 d 1 9.0 t\nq Q0 b 2 2.0 t\nq Q0 a 3 1.9999999 t\nq Q0 c 4 1.5 t\n")
    text = (
        "\ufeff# a comment\n\nq1 Q0 a 1 1 old\nq1 Q0 a 2 5 old\nq1 Q0 b 3 4\nq1 Q0 c\n"
        "q1 Q0 d 1 high t extra\nq2 Q0 e 1 nan t\nq2 Q0 f 2 -inf t\n"
    )
    assert mended(put(tmp_path, text), "run") == (
        b"q1 Q0 a 1 5.0 t\nq1 Q0 b 2 4.0 t\nq1 Q0 d 3 0.0 t\nq2 Q0 f 1 2.0 t\nq2 Q0 e 2 1.0 t\n"
    )
    text = "# c\nq1 0 a 1 # why\nq1 0 a 2.7\nq1 0 b c d\nq1 0 e -1\n\nq2 0 a -1\n"
    assert mended(put(tmp_path, text), "qrels") == b"q1 0 a 2\nq1 0 e -1\n"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("run", "# nothing\n"),
        ("run", "q Q0 a 1 1 t\rq Q0 b 1 1 t\r"),
        ("run", "q Q0 a 1 1 t\nq Q0 b 2 0,5\n"),
        ("run", "q Q0 a 1 1.234,5 t\n"),
        ("run", b"\n\x1f\x8b Q0 a 1 1 t\n"),
        ("qrels", "q 0 a -1\n"),
        ("qrels", "q 0 a 1\nq 0 b 12345678901\n"),
    ],
)
def test_a_file_that_cannot_be_fixed_is_rejected(tmp_path: Path, kind: Kind, text: str | bytes) -> None:
    with pytest.raises(ConversionError):
        mended(put(tmp_path, text), kind)


@given(st.lists(st.tuples(st.sampled_from(["q1", "q2"]), docnos), min_size=1))
def test_fixed_qrels_have_the_same_scores(tmp_path: Path, judged: list[tuple[str, list[str]]]) -> None:
    labels = {(topic, doc): n % 4 - 1 for n, (topic, docs) in enumerate(judged) for doc in docs}
    labels |= {(topic, "z"): 1 for topic, _ in judged}
    text = "".join(f"{topic}\t0  {doc} {label}\n" for (topic, doc), label in labels.items())
    fixed = mended(put(tmp_path, "# all judgments\n" + text), "qrels")
    run = "".join(f"{q} Q0 d{n} 1 {n % 5} t\n" for q in ("q1", "q2") for n in range(12)).encode()
    assert values(fixed, run) == values(text.encode(), run)


FIELDS = [
    *(b"q1", b"q2", b"Q0", b"0", b"a", b"b", b"1", b"2.5", b"-1", b"nan", b"inf", b"#", b"#c", b"\r"),
    *(b"\xef\xbb\xbf", b"\xc2\xa0", b"\xff", b"1e39", b"0x1p2", b"1e-50", b"7" * 30),
]
line = st.lists(st.sampled_from(FIELDS), max_size=7).map(b" ".join)


@given(st.one_of(st.lists(line, max_size=12).map(b"\n".join), st.binary(max_size=60)), st.sampled_from(BOTH))
def test_any_bytes_give_findings_or_one_error_and_are_fixed_for_good(
    tmp_path: Path, content: bytes, version: int
) -> None:
    path = put(tmp_path, content)
    for kind in PREDICTED:
        try:
            fixed = mended(path, kind, version)
        except ConversionError:
            continue
        again = put(tmp_path, fixed, "again")
        assert all(takes(findings(again, kind), one) for one in BOTH)
        assert mended(again, kind, version) == fixed
