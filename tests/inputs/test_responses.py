"""Generated responses in a track: dropped like runs, graded like passages, next to ranked runs."""

from __future__ import annotations

import gzip
import html
import json
from pathlib import Path

import pytest
from served import client_of
from support import HashGrader, make_small_track, printed, update

import converters
import trecexam
from converters.convert import converted
from trecexam.cli.main import run
from trecexam.errors import TrecexamError


def responses(path: Path, answers: dict[str, str], name: str | None = "gen", **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {"topic_id": query_id, "answer": [{"text": text, "citations": [f"{query_id}-d03"]}], **more}
        | ({"run_id": name} if name else {})
        for query_id, text in answers.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pooled(root: Path, grader: HashGrader) -> set[str]:
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        return {row["doc_id"] for row in track.grades()}


def test_generated_responses_are_on_the_leaderboard_next_to_ranked_runs(
    small_track: Path, hash_grader: HashGrader
) -> None:
    responses(small_track / "runs" / "gen.jsonl", {"q1": "An answer. " * 150, "q2": "Another answer."})
    done = update(small_track, hash_grader)
    assert (done.runs, done.rejected) == (4, ())
    board = (small_track / "out" / "leaderboard.tsv").read_text()
    assert "\ngen\t" in board
    labels = [line.split() for line in (small_track / "out" / "rubric.qrels").read_text().splitlines()]
    own = [(query_id, doc_id) for query_id, _, doc_id, _ in labels if doc_id.startswith("gen/")]
    assert own == [("q1", "gen/q1/1"), ("q1", "gen/q1/2"), ("q2", "gen/q2/1")]


def test_the_converted_run_scores_the_leaderboard_value_on_the_exported_qrels(
    small_track: Path, hash_grader: HashGrader
) -> None:
    import ir_measures

    path = responses(small_track / "runs" / "gen.jsonl", {"q1": "An answer. " * 150, "q3": "Another answer."})
    update(small_track, hash_grader)
    board = json.loads((small_track / "out" / "leaderboard.json").read_text())
    (row,) = [row for row in board["runs"] if row["run"] == "gen"]
    qrels = list(ir_measures.read_trec_qrels(str(small_track / "out" / "rubric.qrels")))
    entries = [(e.query_id, e.doc_id, e.score) for e in converted(path, None, "run")]
    run_ = [ir_measures.ScoredDoc(*entry) for entry in entries]
    value = ir_measures.calc_aggregate([ir_measures.nDCG @ 8], qrels, run_)[ir_measures.nDCG @ 8]
    assert row["scores"]["nDCG@8"]["mean"] == pytest.approx(value, abs=1e-6)
    # The unanswered query counts 0.
    assert 0 < value <= 2 / 3


@pytest.mark.parametrize(
    ("pool", "expected"),
    [("text", {"gen/q1/1"}), ("citations", {"q1-d03"}), ("both", {"gen/q1/1", "q1-d03"})],
)
def test_a_setting_selects_what_is_graded_of_a_response(
    tmp_path: Path, hash_grader: HashGrader, pool: str, expected: set[str]
) -> None:
    root = make_small_track(tmp_path / "track", config=f'[track]\ndepth = 8\npool = "{pool}"\n')
    for path in (root / "runs").iterdir():
        path.unlink()
    responses(root / "runs" / "gen.jsonl", {"q1": "An answer."})
    assert pooled(root, hash_grader) == expected


def test_a_prompt_text_is_matched_to_the_queries(small_track: Path, hash_grader: HashGrader) -> None:
    path = small_track / "runs" / "chat.jsonl"
    path.write_text(json.dumps({"prompt": "query number q2", "response": "So."}) + "\n")
    assert update(small_track, hash_grader).rejected == ()
    assert "chat/q2/1" in (small_track / "out" / "rubric.qrels").read_text()
    path.write_text(json.dumps({"prompt": "what else?", "response": "So."}) + "\n")
    (row,) = update(small_track, hash_grader).rejected
    assert "no query of this track has the text 'what else?'" in row.reason


def test_unusable_responses_are_reported_and_the_rest_is_used(
    small_track: Path, hash_grader: HashGrader
) -> None:
    runs = small_track / "runs"
    responses(runs / "a.jsonl", {"q1": "One."}, "same")
    responses(runs / "b.jsonl", {"q1": "Two."}, "same")
    (runs / "c.jsonl").write_text(
        '{"run_id": "c", "topic_id": "q1", "answer": [{"text": "x", "citations": [9]}]}\n'
    )
    responses(runs / "d.jsonl", {"q9": "An answer to nothing."}, "lost")
    two = responses(runs / "e.jsonl", {"q1": "One."}, "e1").read_text()
    (runs / "e.jsonl").write_text(two + two.replace("e1", "e2"))
    done = update(small_track, hash_grader)
    reasons = {row.file: (row.line, row.reason) for row in done.rejected}
    assert set(reasons) == {f"runs/{name}.jsonl" for name in "bde"}
    assert "give these another run id" in reasons["runs/b.jsonl"][1]
    assert "is among the grader's queries" in reasons["runs/d.jsonl"][1]
    assert "make a file for each" in reasons["runs/e.jsonl"][1]
    # A citation without a reference is counted, and its response is accepted.
    assert done.runs == 5


#: A line of a file of responses to q1 and q3, why it is rejected, and what is lost with it.
BAD_LINES = [
    (b'{"run_id": "gen", "topic_id": "q2", "ans', "not valid JSON", "line"),
    (b"garbage", "not valid JSON", "line"),
    (b"[1, 2]", "not a JSON object", "line"),
    (b'{"run_id": "gen", "topic_id": "q2", "answer": [{"text": "caf\xe9"}]}', "not UTF-8", "line"),
    (b'{"run_id": "gen", "topic_id": "q2", "answer": [{"text": "a\0"}]}', "not valid JSON", "line"),
    (b'{"run_id": "gen", "answer": [{"text": "Two."}]}', "no query: a response has", "line"),
    (b'{"run_id": "gen", "topic_id": "q2"}', 'no "answer" or "responses" list', "line"),
    (b'{"run_id": "gen", "topic_id": "q2", "answer": [{"text": " "}]}', "has no text", "response"),
    (b'{"run_id": "gen", "topic_id": "q1", "answer": ["Two."]}', "answers query 'q1' twice", "response"),
    (b'{"run_id": "gen", "prompt": "query number q1", "text": "2"}', "answers query 'q1' twice", "response"),
    (b'{"run_id": "gen", "prompt": "what else?", "text": "Two."}', "no query of this track has", "response"),
]  # fmt: skip


def write_bad(runs: Path, name: str, place: int, line: bytes) -> None:
    """A file of two responses, and this bad line before, between or after them."""
    path = responses(runs / f"{name}.jsonl", {"q1": "One.", "q3": "Three."}, name)
    lines = path.read_bytes().splitlines()
    lines.insert(place, line.replace(b'"gen"', f'"{name}"'.encode()))
    path.write_bytes(b"\n".join(lines) + b"\n")


def test_a_bad_line_of_responses_loses_only_that_line(small_track: Path, hash_grader: HashGrader) -> None:
    # Of two responses to a query the first counts.
    files = {
        f"gen{n:02}-{place}": (max(place, 1) if "twice" in bad[1] else place, bad)
        for n, bad in enumerate(BAD_LINES)
        for place in (0, 1)
    }
    for name in files:
        responses(small_track / "runs" / f"{name}.jsonl", {"q1": "One.", "q3": "Three."}, name)
    assert not update(small_track, hash_grader).rejected
    expected = scores_of(small_track)
    for name, (place, (line, _, _)) in files.items():
        write_bad(small_track / "runs", name, place, line)
    rejected = {row.file: row for row in update(small_track, hash_grader).rejected}
    assert scores_of(small_track) == expected
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        status = track.status()
    assert len(rejected) == status["rejected"] == len(files)
    assert status["lost"] == {"line": 14, "response": 8}
    for name, (place, (_, reason, lost)) in files.items():
        found = rejected[f"runs/{name}.jsonl"]
        assert (found.line, found.lost) == (place + 1, lost)
        assert reason in found.reason
        note = f"{found.file}: 1 of 3 responses rejected: a query left without a response scores 0"
        assert note in status.notes


def test_a_truncated_file_or_one_without_good_lines_is_rejected(
    small_track: Path, hash_grader: HashGrader
) -> None:
    runs = small_track / "runs"
    whole = gzip.compress(responses(runs / "cut.jsonl", {"q1": "One.", "q2": "Two."}).read_bytes() * 500)
    (runs / "cut.jsonl").unlink()
    (runs / "cut.jsonl.gz").write_bytes(whole[:-20])
    (runs / "bad.jsonl").write_text('{"topic_id": "q1"}\n{"topic_id": "q2"}\n')
    done = update(small_track, hash_grader)
    assert done.runs == 3
    assert {(row.file, row.lost) for row in done.rejected} == {
        ("runs/bad.jsonl", "file"), ("runs/cut.jsonl.gz", "file")
    }  # fmt: skip


def scores_of(root: Path) -> dict[str, str]:
    """run -> its line on the leaderboard."""
    lines = (root / "out" / "leaderboard.tsv").read_text().splitlines()[1:]
    return {line.split("\t")[0]: line for line in lines}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gen.jsonl", "gen.jsonl"], "IN and OUT are the same file"),
        (["gen.jsonl", "out.jsonl"], "does not tell the format: name it with --to"),
        (["gen.jsonl", "out.qrels"], "'responses' cannot be converted to 'qrels'"),
        (["gen.jsonl", "out.x", "--to", "rnu"], "no format 'rnu'"),
        (["gen.jsonl", "nowhere/out.run"], "cannot be written"),
    ],
)
def test_a_failed_conversion_leaves_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    good = responses(tmp_path / "gen.jsonl", {"q1": "An answer."}).read_text()
    (tmp_path / "bad.jsonl").write_text(good + '{"topic_id": "q2"}\n')
    err = printed(capsys, "convert", *words, status=2).err
    assert message in err
    assert err.count("bad.jsonl") <= 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.jsonl", "gen.jsonl"]


def test_a_conversion_skips_bad_lines_of_responses_and_reports_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = responses(tmp_path / "gen.jsonl", {"q1": "One.", "q2": "Two."}).read_text()
    bad = tmp_path / "bad.jsonl"
    bad.write_text(good.replace("\n", '\n{"topic_id": "q3"}\n', 1))
    err = printed(capsys, "convert", bad, tmp_path / "bad.run", status=1).err
    assert f'{bad}:2: no "answer"' in err
    assert "(lost: line)" in err
    assert run(["convert", str(tmp_path / "gen.jsonl"), str(tmp_path / "gen.run")]) == 0
    assert (tmp_path / "bad.run").read_bytes() == (tmp_path / "gen.run").read_bytes()
    bad.write_text('{"topic_id": "q3"}\n' * 2)
    assert run(["convert", str(bad), str(tmp_path / "none.run")]) == 2
    assert not (tmp_path / "none.run").exists()


def test_a_pool_can_be_converted_to_each_of_its_parts(
    small_track: Path, hash_grader: HashGrader, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        pool = tmp_path / "pool.jsonl.gz"
        converters.write(track.export.pool(), pool, "workbench")
    for target in ("qrels", "passages", "grades", "workbench"):
        assert run(["convert", str(pool), str(tmp_path / target), "--to", target]) == 0
    assert run(["check", str(tmp_path / "qrels")]) == 0
    assert run(["convert", str(pool), str(tmp_path / "all.run")]) == 2
    assert "holds 3 runs: name one of run" in capsys.readouterr().err
    assert run(["convert", str(pool), str(tmp_path / "one.run"), "--run", "run1"]) == 0
    ours = converters.read(small_track / "runs" / "run1.run")
    again = converters.read(tmp_path / "one.run")
    for query_id in ours.query_ids:
        assert again.ranking(query_id, 8) == ours.ranking(query_id, 8)


def unit(root: Path, value: str, pool: str = "text") -> None:
    (root / "trecexam.toml").write_text(f'[track]\nunit = "{value}"\npool = "{pool}"\n')


#: The number of excluded runs, and how to include them.
LEFT_OUT = (
    'skipped 3 ranked runs by `unit = "response"` in [track]; `unit = "passage"` grades ranked runs too'
)


def test_with_whole_responses_ranked_runs_are_neither_pooled_graded_nor_listed(
    small_track: Path, hash_grader: HashGrader, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"q1": "An answer. " * 30, "q2": "Another answer."}
    responses(small_track / "runs" / "gen.jsonl", answers)
    unit(small_track, "response")
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        assert track.update().notes == (LEFT_OUT,)
        graded_texts = {cell.text for cell in hash_grader.asked}
        assert {text.strip() for text in graded_texts} == {text.strip() for text in answers.values()}
        assert {row["doc_id"] for row in track.grades()} == {"gen/q1", "gen/q2"}
        for board in (track.leaderboard(), track.leaderboard(["P@20"]), track.leaderboard(official=True)):
            assert [row.run for row in board.rows] == ["gen"]
            assert LEFT_OUT in board.notes
        status = track.status()
    assert (status["runs"], status["left_out_runs"]) == (1, 3)
    board_file = (small_track / "out" / "leaderboard.tsv").read_text()
    assert [line.split("\t")[0] for line in board_file.splitlines()] == ["run", "gen"]
    assert LEFT_OUT in printed(capsys, "status", small_track).err


def test_judgments_of_passages_give_whole_responses_no_official_scores(
    small_track: Path, hash_grader: HashGrader
) -> None:
    responses(small_track / "runs" / "gen.jsonl", {"q1": "An answer.", "q2": "Another answer."})
    unit(small_track, "response")
    reason = (
        "qrels.txt: no passage that it judges ('q1-d00', 'q1-d01' and 34 more) is in the pool "
        "('gen/q1', 'gen/q2'): these are whole responses"
    )
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        board = track.leaderboard(official=True)
        assert reason in board.notes
        assert all(not score.exists for row in board.rows for score in row.scores)
        assert board.ranks == (None,)
        with pytest.raises(TrecexamError, match="these are whole responses"):
            track.agreement()
    with client_of(small_track) as client:
        page = html.unescape(client.get("/").text)
    assert page.count(reason) == page.count(LEFT_OUT.split("`")[0]) == 1
    assert "official" not in page.partition("<table")[2].partition("</table>")[0]


def test_a_track_that_changes_its_unit_shows_the_new_texts_and_keeps_both_grades(
    small_track: Path, hash_grader: HashGrader
) -> None:
    responses(small_track / "runs" / "gen.jsonl", {"q1": "An answer. " * 150})
    own = [{"gen/q1/1", "gen/q1/2"}, {"gen/q1"}, {"gen/q1/1", "gen/q1/2"}]
    graded = []
    for value, expected in zip(("passage", "response", "passage"), own, strict=True):
        unit(small_track, value)
        with trecexam.open_track(small_track, grader=hash_grader) as track:
            graded.append(track.update().graded)
            doc_ids = {row["doc_id"] for row in track.grades()}
            assert len(track.leaderboard().rows) == (1 if value == "response" else 4)
        assert {doc_id for doc_id in doc_ids if doc_id.startswith("gen/")} == expected
    assert graded[1] > 0
    assert graded[2] == 0


def test_a_text_with_a_query_id_is_an_answer_in_the_runs_folder(
    small_track: Path, hash_grader: HashGrader
) -> None:
    (small_track / "runs" / "plain.jsonl").write_text('{"query_id": "q1", "text": "An answer."}\n')
    (small_track / "runs" / "odd.jsonl").write_text('{"what": [1, "x"]}\n')
    (small_track / "runs" / "list.json").write_text("[1,2,3]")
    done = update(small_track, hash_grader)
    assert done.runs == 4
    of_list, row = done.rejected
    assert "this is a JSON list of other things" in of_list.reason
    assert (row.file, row.line) == ("runs/odd.jsonl", 1)
    assert "no query: a response has" in row.reason
