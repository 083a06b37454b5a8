"""Findings on runs and qrels, and fixed files, agree with NIST's programs."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from real_trec_eval import Evaluation, TrecEval, damaged_qrels, damaged_run
from support import HashGrader, make_small_track, tsv_rows
from text_files import put

import trecexam
from converters import ConversionError
from trecexam.extensions.check import preflight
from trecexam.extensions.check.mending import mended
from trecexam.extensions.check.preflight import Kind
from trecexam.extensions.check.trec_eval_rules import Finding, takes

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
FILES = range(400 if THOROUGH else 100)
MENDED = range(150 if THOROUGH else 50)
MEASURES = ("map", "ndcg", "ndcg_cut.2", "P.2", "recip_rank", "bpref", "num_ret")
TOPICS = [b"q1", b"q2"]
QRELS = "".join(f"{topic} 0 {doc} {n}\n" for topic in ("q1", "q2") for n, doc in enumerate("cbaé"))
RUN = "".join(f"{topic} Q0 {doc} 1 {n} t\n" for topic in ("q1", "q2") for n, doc in enumerate("dbca"))
#: With these, the behaviour of trec_eval depends on uninitialised memory.
UNDEFINED = {"only negative labels", "empty"}
#: Fixed files with these have other scores than the original, as trecexam/extensions/check/mending.py says.
MENDED_OTHERWISE = ("byte-order mark", "comment", "score not a number", "only negative labels")


@pytest.fixture
def evaluate(tmp_path: Path, trec_eval: TrecEval) -> Callable[..., Evaluation]:
    """Evaluates a run with good qrels, or qrels with a good run."""
    qrels, run = tmp_path / "good.qrels", tmp_path / "good.run"
    qrels.write_text(QRELS)
    run.write_text(RUN)

    def with_good(kind: str, content: bytes, *options: str) -> Evaluation:
        path = put(tmp_path, content, f"evaluated.{kind}")
        return trec_eval.evaluate(*((qrels, path) if kind == "run" else (path, run)), MEASURES, *options)

    return with_good


def check_file(kind: Kind, path: Path) -> tuple[Finding, ...]:
    return preflight.check_file(path, kind, judged=TOPICS).findings


@pytest.mark.parametrize(("kind", "damaged"), [("run", damaged_run), ("qrels", damaged_qrels)])
def test_trec_eval_accepts_a_file_if_and_only_if_check_does(
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: Kind, damaged: Callable[[int], bytes]
) -> None:
    accepted = compared = 0
    for seed in FILES:
        path = put(tmp_path, damaged(seed), f"x.{kind}")
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
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: Kind, damaged: Callable[[int], bytes]
) -> None:
    compared = 0
    for seed in MENDED:
        path = put(tmp_path, damaged(seed), f"x.{kind}")
        try:
            content = mended(preflight.check_file(path, kind), trec_eval.version)
        except ConversionError:
            continue
        evaluation = evaluate(kind, content, "-c")
        if "No queries with both" not in evaluation.message:
            assert evaluation.accepted, (seed, path.read_bytes(), content, evaluation)
        kinds = " ".join(finding.kind for finding in check_file(kind, path))
        if any(name in kinds for name in MENDED_OTHERWISE):
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
    tmp_path: Path, trec_eval: TrecEval, evaluate: Any, kind: Kind, content: bytes, accepted: bool
) -> None:
    assert evaluate(kind, content, "-c").accepted == accepted
    assert not takes(check_file(kind, put(tmp_path, content, f"x.{kind}")), trec_eval.version)


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
    findings = check_file("run", put(tmp_path, content, "x.run"))
    assert tuple(version for version in (9, 10) if takes(findings, version)) == versions
    if not any(finding.kind == "empty" for finding in findings):
        assert evaluate("run", content, "-c").accepted == (trec_eval.version in versions)


# Outputs of a track equal what NIST's programs compute from its exported files.


#: The leaderboard's name of a measure: trec_eval's name, and the lowest relevant label.
NAMES = {
    "nDCG@3": ("ndcg_cut.3", 1), "nDCG": ("ndcg", 1), "P(rel=4)@5": ("P.5", 4), "AP(rel=5)": ("map", 5),
    "RR(rel=5)": ("recip_rank", 5), "R(rel=4)@4": ("recall.4", 4), "Rprec(rel=5)": ("Rprec", 5),
}  # fmt: skip


def draw_track(root: Path, seed: int, version: int) -> Path:
    """A graded track whose runs have ties, holes, unpooled passages, and lines in any order."""
    rng = random.Random(seed)
    measures = ", ".join(f'"{name}"' for name in NAMES)
    make_small_track(root, config=f"[track]\ndepth = 5\n[scores]\nmeasures = [{measures}]\n", queries=4)
    # 10 compares doubles, as is done here: what only differs past a float's precision is a tie in 9.
    scores = ["0", "1", "1.0", "2", "-3.5", "1e3"] + (["1.00000001", "1e-50"] if version == 10 else [])
    for path in (root / "runs").iterdir():
        lines = [
            f"q{query} Q0 q{query}-d{doc:02} {rng.randrange(9)} {rng.choice(scores)} {path.stem}\n"
            for query in rng.sample(range(1, 6), 4)
            for doc in rng.sample(range(16), rng.randint(1, 12))
        ]
        rng.shuffle(lines)
        path.write_text("".join(lines))
    config = root / "trecexam.toml"
    config.write_text(f"{config.read_text()}[report]\nwrite = false\n")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
    return root


def test_the_leaderboard_equals_trec_eval_on_the_exported_qrels(
    tmp_path: Path, trec_eval: TrecEval, thorough: bool
) -> None:
    compared, tracks = 0, 12 if thorough else 5
    for seed in range(tracks):
        root = draw_track(tmp_path / str(seed), seed, trec_eval.version)
        ours: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for row in tsv_rows(root / "out" / "per_query.tsv"):
            ours[row["run"], row["measure"]][row["query_id"]] = float(row["value"])
        judged = {line.split()[0] for line in (root / "out" / "rubric.qrels").read_text().splitlines()}
        # A query without pooled passages has no line there: trec_eval cannot count it.
        for row in tsv_rows(root / "out" / "leaderboard.tsv") if len(judged) == 4 else ():
            for name in NAMES:
                ours[row["run"], name]["all"] = float(row[name])
        for (run, name), values in ours.items():
            called, level = NAMES[name]
            printed = trec_eval.evaluate(
                root / "out" / "rubric.qrels", root / "runs" / f"{run}.run", [called], "-c", "-l", str(level)
            )
            # Version 9 prints no line for a topic that the run lacks; it counts as 0 in the mean.
            by_topic = dict.fromkeys(values, 0.0)
            by_topic |= {
                topic: float(value) for (topic, _), value in printed.values.items() if topic in values
            }
            # It prints four decimals, and the table has six.
            assert values == pytest.approx(by_topic, rel=0, abs=0.0000506), (seed, run, name)
            compared += len(values)
    assert compared > 0.9 * tracks * 3 * len(NAMES) * 5


def test_exported_qrels_are_accepted_and_exported_subtopics_rejected_as_check_says(
    tmp_path: Path, trec_eval: TrecEval
) -> None:
    root = draw_track(tmp_path, 1, trec_eval.version)
    run = next((root / "runs").iterdir())
    for name in ("rubric.qrels", "rubric.subtopics.qrels"):
        qrels = root / "out" / name
        accepted = trec_eval.evaluate(qrels, run, ["map"], "-c").accepted
        assert takes(check_file("qrels", qrels), trec_eval.version) == accepted == (name == "rubric.qrels")


@pytest.mark.parametrize("options", [{"label": "count"}, {"binary": True}, {"min_rating": 2}])
def test_all_forms_of_exported_qrels_are_accepted(
    tmp_path: Path, trec_eval: TrecEval, options: dict[str, Any]
) -> None:
    root = draw_track(tmp_path, 2, trec_eval.version)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        rows = track.qrels(**options)
    path = tmp_path / "exported.qrels"
    path.write_text("".join(f"{r.query_id} 0 {r.doc_id} {r.relevance}\n" for r in rows))
    run = next((root / "runs").iterdir())
    assert trec_eval.evaluate(path, run, ["map"], "-c").accepted
