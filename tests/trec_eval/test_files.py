"""Findings on runs and qrels, and fixed files, agree with NIST's programs."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from real_trec_eval import Evaluation, TrecEval, damaged_qrels, damaged_run

from converters import ConversionError
from trecexam.extensions.check.mending import fix_qrels, fix_run
from trecexam.extensions.check.preflight import check_qrels, check_run
from trecexam.extensions.check.trec_eval_rules import Finding, takes

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
FILES = range(400 if THOROUGH else 100)
MENDED = range(150 if THOROUGH else 50)
MEASURES = ("map", "ndcg", "ndcg_cut.2", "P.2", "recip_rank", "bpref", "num_ret")
TOPICS = ["q1", "q2"]
QRELS = "".join(f"{topic} 0 {doc} {n}\n" for topic in TOPICS for n, doc in enumerate("cbaé"))
RUN = "".join(f"{topic} Q0 {doc} 1 {n} t\n" for topic in TOPICS for n, doc in enumerate("dbca"))
#: With these, the behaviour of trec_eval depends on uninitialised memory.
UNDEFINED = {"only negative labels", "empty"}
#: Fixed files with these have other scores than the original, as trecexam/extensions/check/mending.py says.
MENDED_OTHERWISE = {"byte-order mark", "comment", "score not a number", "only negative labels"}


@pytest.fixture
def evaluate(tmp_path: Path, trec_eval: TrecEval) -> Callable[..., Evaluation]:
    """Evaluates a run with good qrels, or qrels with a good run."""
    qrels, run = tmp_path / "good.qrels", tmp_path / "good.run"
    qrels.write_text(QRELS)
    run.write_text(RUN)

    def with_good(kind: str, content: bytes, *options: str) -> Evaluation:
        path = put(tmp_path / f"evaluated.{kind}", content)
        return trec_eval.evaluate(*((qrels, path) if kind == "run" else (path, run)), MEASURES, *options)

    return with_good


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def check_file(kind: str, path: Path) -> tuple[Finding, ...]:
    return check_run(path, judged=TOPICS) if kind == "run" else check_qrels(path)


def mended(kind: str, path: Path, version: int) -> bytes:
    file = io.BytesIO()
    if kind == "run":
        fix_run(path, file, version=version)
    else:
        fix_qrels(path, file)
    return file.getvalue()


@pytest.mark.parametrize(("kind", "damaged"), [("run", damaged_run), ("qrels", damaged_qrels)])
def test_trec_eval_accepts_a_file_if_and_only_if_check_does(
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: str, damaged: Callable[[int], bytes]
) -> None:
    accepted = compared = 0
    for seed in FILES:
        path = put(tmp_path / f"x.{kind}", damaged(seed))
        findings = check_file(kind, path)
        kinds = {finding.kind for finding in findings}
        if kinds & UNDEFINED:
            continue
        # With -c, version 10 gives zeros to every topic that a run does not have, even if these are all.
        evaluation = evaluate(kind, path.read_bytes(), *(() if "no common topic" in kinds else ("-c",)))
        no_topic = "No queries with both" in evaluation.message and kind == "qrels"
        says = takes(findings, trec_eval.version) and not no_topic
        assert says == evaluation.accepted, (seed, path.read_bytes(), evaluation, findings)
        accepted, compared = accepted + evaluation.accepted, compared + 1
    assert compared > 0.9 * len(FILES)
    assert 0.3 * compared < accepted < 0.8 * compared


@pytest.mark.parametrize(("kind", "damaged"), [("run", damaged_run), ("qrels", damaged_qrels)])
def test_a_fixed_file_is_accepted_and_scores_as_the_original(
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: str, damaged: Callable[[int], bytes]
) -> None:
    compared = 0
    for seed in MENDED:
        path = put(tmp_path / f"x.{kind}", damaged(seed))
        try:
            content = mended(kind, path, trec_eval.version)
        except ConversionError:
            continue
        evaluation = evaluate(kind, content, "-c")
        if "No queries with both" not in evaluation.message:
            assert evaluation.accepted, (seed, path.read_bytes(), content, evaluation)
        if {finding.kind for finding in check_file(kind, path)} & MENDED_OTHERWISE:
            continue
        original = evaluate(kind, path.read_bytes(), "-c")
        if original.accepted:
            assert evaluation.values == original.values, (seed, path.read_bytes(), content)
            compared += 1
    assert compared > 0.2 * len(MENDED)


@pytest.mark.parametrize(
    ("kind", "content", "accepted"),
    [
        # From here it reads nothing, and reports nothing.
        ("run", RUN.encode().replace(b"q2", b"\0q2"), True),
        ("qrels", QRELS.encode().replace(b"q2", b"\0q2"), True),
        # The first topic's labels find no memory; a later one's are counted in the first one's memory.
        ("qrels", b"q1 0 a -1\nq2 0 a 1\n", False),
        ("qrels", b"q1 0 a 1\nq2 0 a -1\n", True),
        ("qrels", b"q1 0 a 1\nq2 0 a -2\n", False),
    ],
)
def test_check_rejects_some_files_that_some_trec_eval_versions_accept(
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: str, content: bytes, accepted: bool
) -> None:
    assert evaluate(kind, content, "-c").accepted == accepted
    assert not takes(check_file(kind, put(tmp_path / f"x.{kind}", content)), trec_eval.version)


@pytest.mark.parametrize(
    ("content", "versions"),
    [
        (b"# mine\n", ()),
        (b"# a comment of six words\n", ()),
        (b"# mine\n" + RUN.encode(), (10,)),
        (b"# a comment of six words\n" + RUN.encode(), (9, 10)),
        (RUN.encode() + b"q3 Q0 a 1 1 t\nq3 Q0 a 2 1 t\n", (9, 10)),
        (RUN.encode() + b"q2 Q0 a 2 1 t\n", ()),
    ],
)
def test_comments_and_duplicate_docnos_affect_only_their_version_and_topic(
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, content: bytes, versions: tuple[int, ...]
) -> None:
    findings = check_file("run", put(tmp_path / "x.run", content))
    assert tuple(version for version in (9, 10) if takes(findings, version)) == versions
    if not any(finding.kind == "empty" for finding in findings):
        assert evaluate("run", content, "-c").accepted == (trec_eval.version in versions)
