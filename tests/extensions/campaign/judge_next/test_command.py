from __future__ import annotations

import csv
import io
import itertools
import json
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import RECORDED, HashGrader, hashed_rating, make_small_track, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.graders import Answer, Cell
from trecexam.line.store import GradeStore

EFFECTS = ("expected_swaps", "expected_change", "p_change", "from", "runs")
PASSAGE = ["place", "query_id", "doc_id", "label", *EFFECTS, "text"]
CELL = ["place", "query_id", "doc_id", "item_id", "rating", *EFFECTS, "item_text", "text"]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


class UnsureGrader(HashGrader):
    """Gives its rating a probability of 0.7, and the next one (0 after 5) the rest."""

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (cell, answer._replace(probabilities=self._chances(answer.rating))) for cell, answer in batch
            ]

    def _chances(self, rating: int | None) -> tuple[float, ...]:
        assert rating is not None
        return tuple(0.7 if r == rating else 0.3 if r == (rating + 1) % 6 else 0.0 for r in range(6))


class SureGrader(HashGrader):
    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        for batch in super().grade(cells):
            yield [
                (c, a._replace(probabilities=tuple(float(r == a.rating) for r in range(6)))) for c, a in batch
            ]


@pytest.fixture
def unjudged(graded: Path) -> Path:
    (graded / "qrels.txt").unlink()
    return graded


def test_passages_that_change_the_ranking_most_come_first(
    unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(unjudged), "--top", "5"]) == 0
    out, err = capsys.readouterr()
    found = rows(out)
    assert list(found[0]) == PASSAGE
    assert [row["place"] for row in found] == ["1", "2", "3", "4", "5"]
    changes = [float(row["expected_change"]) for row in found]
    assert changes == sorted(changes, reverse=True)
    assert {row["from"] for row in found} == {"items"}
    assert found[0]["text"].startswith("passage ")
    assert "could change the ranking by P(rel=4)@8; these are the first 5\n" in err
    labels = {
        tuple(line.split()[::2]): line.split()[3]
        for line in (unjudged / "out/rubric.qrels").read_text().splitlines()
    }
    assert all(row["label"] == labels[row["query_id"], row["doc_id"]] for row in found)
    assert run(["judge-next", str(unjudged), "--by", "swaps"]) == 0
    swaps = [float(row["expected_swaps"]) for row in rows(capsys.readouterr().out)]
    assert swaps == sorted(swaps, reverse=True)


@pytest.mark.parametrize("top", [0, -1])
def test_a_list_of_less_than_one_judgment_is_refused(unjudged: Path, top: int) -> None:
    with (
        trecexam.open_track(unjudged) as track,
        pytest.raises(TrecexamError, match=f"top {top}: give 1 or more"),
    ):
        track.judge_next(top=top)


def test_the_expected_effects_equal_those_of_override_on_the_leaderboard(unjudged: Path) -> None:
    def means(track: Path) -> dict[str, float]:
        with trecexam.open_track(track) as opened:
            return {row.run: row.scores[0].mean for row in opened.leaderboard(["nDCG@8"]).rows}

    with trecexam.open_track(unjudged) as track:
        best = track.judge_next("nDCG@8").rows[0]
    before = means(unjudged)
    swaps = change = 0.0
    for rating, probability in enumerate(best.chances):
        tried = unjudged.parent / f"tried{rating}"
        shutil.copytree(unjudged, tried)
        with trecexam.open_track(tried) as track:
            track.override(best.query_id, best.doc_id, rating, who="ann", why="a try")
        after = means(tried)
        pairs = list(itertools.combinations(before, 2))
        for a, b in pairs:
            old, new = before[a] - before[b], after[a] - after[b]
            change += probability * abs(new - old) / len(pairs)
            signs = [(d > 1e-9) - (d < -1e-9) for d in (old, new)]
            swaps += probability * abs(signs[0] - signs[1]) / 2
    assert best.expected_change == pytest.approx(change)
    assert best.expected_swaps == pytest.approx(swaps)
    assert change > 0


def test_cells_are_listed_for_measures_on_items_with_the_arguments_of_override(
    unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(unjudged), "-m", "Cover(rel=4)@8", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    first = found["judgments"][0]
    assert (found["level"], found["measure"], found["n_runs"]) == ("cell", "Cover(rel=4)@8", 3)
    texts = found["texts"][0]
    keys = ("query_id", "doc_id", "item_id")
    assert [texts[key] for key in keys] == [first[key] for key in keys]
    assert first["rating"] == hashed_rating(texts["text"], texts["item_text"])
    chances = [row for row in found["probabilities"] if all(row[key] == first[key] for key in keys)]
    assert sum(row["probability"] for row in chances) == pytest.approx(1)
    assert texts["query_text"] == f"query number {first['query_id']}"
    where = ["--query", first["query_id"], "--doc", first["doc_id"], "--item", first["item_id"]]
    assert f"trecexam override {unjudged} {' '.join(where)} --rating" in err
    assert run(["override", str(unjudged), *where, "--rating", "2", "--who", "ann", "--why", "read it"]) == 0
    assert run(["judge-next", str(unjudged), "-m", "Cover(rel=4)@8", "--json"]) == 0
    out, err = capsys.readouterr()
    assert [first[k] for k in keys] not in [[one[k] for k in keys] for one in json.loads(out)["judgments"]]
    assert "1 cell is left out: judged by a person\n" in err
    assert run(["judge-next", str(unjudged), "--level", "cell", "--top", "3"]) == 0
    assert list(rows(capsys.readouterr().out)[0]) == CELL


def test_passages_judged_by_a_person_are_left_out(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels = (graded / "qrels.txt").read_text().splitlines(keepends=True)
    (graded / "qrels.txt").write_text("".join(line for line in qrels if line.startswith(("q1", "q2"))))
    assert run(["judge-next", str(graded)]) == 0
    out, err = capsys.readouterr()
    found = rows(out)
    assert {row["query_id"] for row in found} == {"q3"}
    assert "passages are left out: judged by a person; --include-judged lists" in err
    assert run(["judge-next", str(graded), "--include-judged", "--query", "q1"]) == 0
    assert {row["query_id"] for row in rows(capsys.readouterr().out)} == {"q1"}
    doc_id = found[0]["doc_id"]
    with trecexam.open_track(graded) as track:
        track.override("q3", doc_id, 3, who="ann", why="read it")
        again = track.judge_next(include_judged=True)
    assert again.judged == 1
    assert ("q3", doc_id) not in [(row.query_id, row.doc_id) for row in again.rows]


def test_a_negative_official_label_is_not_a_judgment(graded: Path) -> None:
    lines = (graded / "qrels.txt").read_text().splitlines()
    open_ones = [f"{line.rsplit(' ', 1)[0]} -1\n" for line in lines if line.startswith("q2")]
    judged = [f"{line}\n" for line in lines if not line.startswith("q2")]
    (graded / "qrels.txt").write_text("".join([*judged, *open_ones]))
    with trecexam.open_track(graded) as track:
        assert {row.query_id for row in track.judge_next().rows} == {"q2"}


def test_a_query_without_results_is_skipped(unjudged: Path) -> None:
    for path in (unjudged / "runs").iterdir():
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("q2")))
    with trecexam.open_track(unjudged) as track:
        for measure in ("nDCG@8", "Cover(rel=4)@8", "alpha_nDCG@8"):
            rows = track.judge_next(measure).rows
            assert {row.query_id for row in rows} == {"q1", "q3"}
        assert track.judge_next(query_ids=["q2"]).rows == ()


def test_if_every_passage_is_judged_the_list_is_empty(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge-next", str(graded)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["\t".join(PASSAGE)]
    assert "no passage is left to judge" in err


def test_the_probabilities_of_the_grader_are_used(small_track: Path) -> None:
    with trecexam.open_track(small_track, grader=UnsureGrader()) as track:
        track.update()
        cells = track.judge_next(level="cell")
        passages = track.judge_next(include_judged=True)
    for one in cells.rows:
        assert one.source == "distribution"
        assert one.chances[one.now] == pytest.approx(0.7)
        assert one.p_change == pytest.approx(0.3)
    assert {row.source for row in passages.rows} == {"distribution"}
    assert all(sum(row.chances) == pytest.approx(1) for row in passages.rows)


def test_if_the_grader_is_certain_the_list_is_empty(
    small_track: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with trecexam.open_track(small_track, grader=SureGrader()) as track:
        track.update()
        found = track.judge_next("nDCG@8", include_judged=True)
    assert found.rows == ()
    assert found.candidates > 0
    monkeypatch.setattr("trecexam.line.track_grader.create", lambda *_, **__: SureGrader())
    assert run(["judge-next", str(small_track), "-m", "nDCG@8", "--include-judged"]) == 0
    assert "would change the ranking: the graders agree on them" in capsys.readouterr().err


def test_other_graders_of_this_track_have_a_vote(small_track: Path) -> None:
    class Other(HashGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            for batch in super().grade(cells):
                yield [(cell, answer._replace(rating=5 - (answer.rating or 0))) for cell, answer in batch]

    for grader in (Other(version=2), HashGrader()):
        with trecexam.open_track(small_track, grader=grader) as track:
            track.update()
            found = track.judge_next(level="cell")
    for one in found.rows:
        assert one.source == "graders"
        assert (one.chances[one.now], one.chances[5 - one.now]) == (0.5, 0.5)
    assert found.rows


def test_a_grader_on_another_scale_has_no_vote(small_track: Path) -> None:
    class Other(HashGrader):
        @property
        def identity(self) -> dict[str, Any]:
            return {"grader": "causal", "prompts": [{"name": "FagB", "asks": "question"}]}

    with trecexam.open_track(small_track, grader=Other()) as track:
        track.update()
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
        found = track.judge_next(level="cell")
    with GradeStore(small_track / ".trecexam/grades.sqlite", write=False) as store:
        assert len(store.graders()) == 2
    assert {row.source for row in found.rows} == {"items"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--level", "passage", "-m", "Cover(rel=4)@8"], "use --level cell"),
        (["-m", "ndcg_cut_10"], "write nDCG@10"),
        (["-m", "nDCG@ten"], "cannot be read"),
        (["--query", "q11"], "no query 'q11' in the bank; did you mean 'q1'?"),
        (["--top", "0"], "0 is not in the range"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    graded: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["judge-next", str(graded), *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert message in err
    assert err.count("\n") == 1


def test_a_ranking_needs_two_runs(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((graded / "runs").iterdir())
    for path in files[1:]:
        path.unlink()
    assert run(["judge-next", str(graded)]) == 2
    assert "only one run, 'run0', so there is no ranking" in capsys.readouterr().err
    files[0].unlink()
    assert run(["judge-next", str(graded)]) == 2
    assert "no runs yet" in capsys.readouterr().err


def test_the_first_grader_that_ranks_two_runs_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (
        '[graders.answers]\nkind = "rubric"\nruns = "responses"\n[graders.lists]\nkind = "rubric"\n'
        "[report]\nwrite = false\n"
    )
    root = make_small_track(tmp_path / "track", config=config)
    answer = [{"text": "It is what it is, and more than that.", "citations": []}]
    row = {"run_id": "gen", "query_id": "q1", "responses": answer}
    (root / "runs" / "gen.jsonl").write_text(json.dumps(row) + "\n")
    with trecexam.open_track(root, graders={name: HashGrader() for name in ("answers", "lists")}) as track:
        track.update()
        found = track.judge_next(top=3)
        assert found.rows == track["lists"].judge_next(top=3).rows
        with pytest.raises(TrecexamError, match="only one run, 'gen'"):
            track["answers"].judge_next()


def test_an_ungraded_track_says_what_to_do(small_track: Path) -> None:
    with (
        trecexam.open_track(small_track, grader=HashGrader()) as track,
        pytest.raises(TrecexamError, match="nothing is graded yet"),
    ):
        track.judge_next()


def test_equal_runs_are_reported_as_tied_and_cannot_be_separated(
    unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(unjudged / "runs")
    for name in ("one", "two"):
        write_run(unjudged / "runs" / f"{name}.run", {"q1": ["q1-d00", "q1-d01"]})
    assert run(["judge-next", str(unjudged)]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert "all 2 runs are tied" in err
    assert "no judgment of the 2 passages would change the ranking" in err


def test_tied_runs_can_be_separated(tmp_path: Path) -> None:
    class Split(HashGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            yield [(cell, Answer(5 if cell.item.item_id.endswith("0") else 0, "ok", "")) for cell in cells]

    root = make_small_track(tmp_path / "track", queries=1)
    (root / "qrels.txt").unlink()
    shutil.rmtree(root / "runs")
    write_run(root / "runs" / "one.run", {"q1": ["q1-d00"]})
    write_run(root / "runs" / "two.run", {"q1": ["q1-d01"]})
    with trecexam.open_track(root, grader=Split()) as track:
        track.update()
        found = track.judge_next()
    assert found.tied
    # Labels are 5 with item ratings 5, 0, 0, 0: at probability 3/4 the runs separate, which is half a swap.
    assert [row.expected_swaps for row in found.rows] == [0.375, 0.375]


def test_passages_with_the_same_text_are_listed_once(unjudged: Path) -> None:
    texts = [json.loads(line) for line in (unjudged / "passages.jsonl").read_text().splitlines()]
    texts[1]["text"] = texts[0]["text"]
    (unjudged / "passages.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    with trecexam.open_track(unjudged) as track:
        track.update()
        found = track.judge_next("nDCG@8")
        listed = {row.doc_id for row in found.rows}
        assert "q1-d00" in listed
        assert "q1-d01" not in listed
        first = next(row for row in found.rows if row.doc_id == "q1-d00")
    alike = {"q1-d00", "q1-d01"}
    lines = [path.read_text().splitlines() for path in (unjudged / "runs").iterdir()]
    assert first.runs == sum(
        any(int(f[3]) <= 8 and f[2] in alike for f in map(str.split, run_lines)) for run_lines in lines
    )


def test_terminal_control_characters_in_texts_are_escaped(
    unjudged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [json.loads(line) for line in (unjudged / "passages.jsonl").read_text().splitlines()]
    for text in texts:
        text["text"] += "\x1b[2J\x07\u202e and\tmore " + "words " * 100
    (unjudged / "passages.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    with trecexam.open_track(unjudged) as track:
        track.update()
    assert run(["judge-next", str(unjudged)]) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert r"\x1b[2J\x07\u202e and more words" in out
    assert all(len(row["text"]) < 90 for row in rows(out))


def test_means_over_answered_queries_equal_those_of_the_leaderboard(unjudged: Path) -> None:
    config = (unjudged / "trecexam.toml").read_text() + '[scores]\naverage = "answered"\n'
    (unjudged / "trecexam.toml").write_text(config)
    lines = (unjudged / "runs/run0.run").read_text().splitlines(keepends=True)
    (unjudged / "runs/run0.run").write_text("".join(line for line in lines if not line.startswith("q1")))
    with trecexam.open_track(unjudged) as track:
        track.update()
        one = track.judge_next("P(rel=4)@8").rows[0]
        before = {row.run: row.scores[0].mean for row in track.leaderboard(["P(rel=4)@8"]).rows}
        change = 0.0
        for rating, probability in enumerate(one.chances):
            track.override(one.query_id, one.doc_id, rating, who="ann", why="a try")
            after = {row.run: row.scores[0].mean for row in track.leaderboard(["P(rel=4)@8"]).rows}
            moved = [
                abs(after[a] - after[b] - before[a] + before[b]) for a, b in itertools.combinations(before, 2)
            ]
            change += probability * sum(moved) / len(moved)
    assert one.expected_change == pytest.approx(change)


@pytest.mark.slow
def test_on_dl19_a_hundred_judgments_help_more_than_any_of_ten_random_hundreds(
    dl19: Path, tmp_path: Path
) -> None:
    from scipy.stats import kendalltau

    names = {
        "--queries": "queries.tsv",
        "--bank": "bank.questions.jsonl.gz",
        "--passages": "passages.jsonl.gz",
        "--qrels": "qrels.txt",
        "--runs": "runs",
        "--recorded": "graded.flan-t5-large.jsonl.gz",
    }
    arguments = [part for option, name in names.items() for part in (option, str(dl19 / name))]
    root = tmp_path / "track"
    assert run(["init", str(root), *arguments]) == 0
    with trecexam.open_track(root) as track:
        track.update()
        listed = [(row.query_id, row.doc_id) for row in track.judge_next(include_judged=True).rows]
        pooled = [(row.query_id, row.doc_id) for row in track.qrels()]
        official = {
            row.run: row.scores[0].mean for row in track.leaderboard(["P(rel=2)@20"], official=True).rows
        }
    judged: dict[tuple[str, str], int] = {}
    for line in (root / "qrels.txt").read_text().splitlines():
        query_id, _, doc_id, label = line.split()
        judged[query_id, doc_id] = {0: 0, 1: 2, 2: 4, 3: 5}[int(label)]

    def tau(chosen: Sequence[tuple[str, str]]) -> float:
        lines = ["query_id\tdoc_id\titem_id\trating\twho\twhy\n"]
        lines += [f"{q}\t{d}\t\t{judged[q, d]}\tassessor\tofficial\n" for q, d in chosen]
        (root / "overrides.tsv").write_text("".join(lines))
        with trecexam.open_track(root) as track:
            board = track.leaderboard(["P(rel=4)@20"])
            assert track.grading.counts().human_passages == len(chosen)
        return float(
            kendalltau(
                [row.scores[0].mean for row in board.rows], [official[row.run] for row in board.rows]
            ).statistic
        )

    chosen = tau(listed[:100])
    assert chosen > 0.88
    assert tau([]) < 0.79
    assert chosen > max(tau(random.Random(seed).sample(pooled, 100)) for seed in range(10))


@pytest.mark.parametrize("command", ["judge-next", "agreement"])
def test_unreadable_answers_do_not_lead_to_advice_to_grade_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    root = make_small_track(tmp_path / "track")
    grader = HashGrader()
    grader.status = lambda cell: "unparsed"
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in track.grades()))
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    capsys.readouterr()
    assert run([command, str(root)]) == 2
    told = capsys.readouterr().err
    assert "the grader gave no rating: of 144 answers 144 are unparsed, 0 refused, 0 errors" in told
    assert f"trecexam verify grading {root}" in told
