"""Only outputs that differ are written again, and they always equal those of a full update."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import REPORTED, HashGrader, contents, hashed_rating, make_small_track, update, write_run

import trecexam
from trecexam.grades import open_track
from trecexam.inputs.inputs import TrackInputs

RUNS = {"leaderboard.tsv", "leaderboard.json", "per_query.tsv", "holes.tsv"}
OFFICIAL = {"correlation.tsv", "correlation.json", "agreement.tsv", "holes.tsv"}


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An updated track; tests must not change it."""
    root = make_small_track(tmp_path_factory.mktemp("updated") / "track", config=REPORTED)
    update(root)
    return root


def new_run(root: Path) -> None:
    """Of passages that are already pooled and graded."""
    write_run(root / "runs" / "new.run", {"q1": ["q1-d03", "q1-d00"], "q2": ["q2-d01"]})


def set_title(root: Path) -> None:
    config = root / "trecexam.toml"
    config.write_text(config.read_text() + '[report]\ntitle = "Another"\n')


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda root: (root / "official_leaderboard.json").write_text('{"run0": 1, "run1": 2, "run2": 3}'),
            {"correlation.tsv", "correlation.json", "report.html"},
        ),
        (
            lambda root: (root / "qrels.txt").write_text("q1 0 q1-d00 3\nq1 0 q1-d05 1\nq2 0 q2-d01 2\n"),
            {*OFFICIAL, "scatter.tsv", "report.html"},
        ),
        (
            lambda root: (root / "runs" / "bad.run").write_text("q1 Q0 q1-d00 1 high bad\n"),
            {"rejected.tsv", "report.html"},
        ),
        (set_title, {"report.html"}),
        (
            new_run,
            {*RUNS, *OFFICIAL, "differences.tsv", "groups.tsv", "scatter.tsv", "report.html"}
            - {"agreement.tsv"},
        ),
    ],
    ids=["official leaderboard", "judgments", "rejected", "title", "run"],
)
def test_only_outputs_that_a_change_concerns_are_written(
    updated: Path, tmp_path: Path, change: Callable[[Path], object], expected: set[str]
) -> None:
    root = Path(shutil.copytree(updated, tmp_path / "track"))
    change(root)
    done = update(root)
    assert done.graded == 0
    assert {path.name for path in done.written} == {*expected, "manifest.json"}


@pytest.mark.parametrize("name", ["rubric.qrels", "leaderboard.json", "report.html", "plots/scatter.svg"])
@pytest.mark.parametrize("change", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[::-1])])
def test_only_the_removed_or_edited_output_is_written_again(
    updated: Path, name: str, change: Callable[[Path], object]
) -> None:
    before = contents(updated / "out")
    change(updated / "out" / name)
    done = update(updated)
    assert done.changed
    assert [path.relative_to(updated / "out").as_posix() for path in done.written] == [name]
    assert contents(updated / "out") == before


def test_after_a_stopped_update_outputs_equal_an_uninterrupted_one(small_track: Path) -> None:
    update(small_track)
    write_run(small_track / "runs" / "new.run", {q: [f"{q}-d{n}" for n in (10, 11)] for q in ("q1", "q2")})
    graded: list[object] = []
    grader = HashGrader(version=2, batch=3)
    stopped = update(small_track, grader, progress=graded.append, stop=lambda: bool(graded))
    assert (stopped.graded, stopped.complete) == (3, False)
    assert json.loads((small_track / "out" / "manifest.json").read_text())["complete"] is False
    update(small_track, HashGrader(version=2))
    after = contents(small_track / "out")
    shutil.rmtree(small_track / "out")
    update(small_track, HashGrader(version=2))
    assert contents(small_track / "out") == after


def drop_run(root: Path, chance: random.Random) -> None:
    docs = [f"q1-d{n:02}" for n in range(12)] + ["q1-d99"]
    ranking = {"q1": chance.sample(docs, 6), "q2": [f"q2-d{n:02}" for n in chance.sample(range(12), 3)]}
    write_run(root / "runs" / f"more{chance.randint(0, 2)}.run", ranking, chance.choice(["same", "other"]))


def remove_run(root: Path, chance: random.Random) -> None:
    runs = sorted((root / "runs").iterdir())
    if len(runs) > 1:
        chance.choice(runs).unlink()


def judge(root: Path, chance: random.Random) -> None:
    lines = [f"q{q} 0 q{q}-d{d:02} {chance.randint(-1, 3)}\n" for q in (1, 2, 3) for d in range(12)]
    (root / "qrels.txt").write_text("".join(chance.sample(lines, chance.choice([1, 5, 36]))))


def rank(root: Path, chance: random.Random) -> None:
    path = root / "official_leaderboard.json"
    if chance.random() < 0.3:
        path.unlink(missing_ok=True)
    else:
        path.write_text(json.dumps({f"run{n}": chance.randint(1, 3) for n in range(3)}))


def rate(root: Path, chance: random.Random) -> None:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        doc_id = chance.choice([row.doc_id for row in track.qrels() if row.query_id == "q1"] or ["q1-d00"])
        item = chance.choice(["q1/0", ""])
        track.override("q1", doc_id, chance.randint(0, 5), item=item, who="Ann", why="seen")


def change_question(root: Path, chance: random.Random) -> None:
    bank = root / "bank.questions.jsonl"
    old, new = chance.sample(["question 1 of q1?", "another question?"], 2)
    bank.write_text(bank.read_text().replace(old, new))


def change_passage(root: Path, chance: random.Random) -> None:
    passages = root / "passages.jsonl"
    old, new = chance.sample(["passage 0 about q2", "told otherwise"], 2)
    passages.write_text(passages.read_text().replace(f'"{old}"', f'"{new}"'))


def change_settings(root: Path, chance: random.Random) -> None:
    scores = [
        "min_rating = 3",
        "min_rating = 4",
        'label = "count"',
        'unparsed = "seed"',
        'average = "answered"',
    ]
    depth = chance.choice([4, 8])
    (root / "trecexam.toml").write_text(f"[track]\ndepth = {depth}\n[scores]\n{chance.choice(scores)}\n")


def edit_output(root: Path, chance: random.Random) -> None:
    paths = sorted(path for path in (root / "out").glob("*") if path.is_file())
    if paths:
        chance.choice(paths).write_text("edited")


CHANGES = (drop_run, remove_run, judge, rank, rate, change_question, change_passage, edit_output)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_after_any_changes_all_outputs_equal_those_made_from_scratch(
    small_track: Path, thorough: bool, seed: int
) -> None:
    chance = random.Random(seed)
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if hashed_rating(cell.text, "x") == 0 else "ok"
    fresh = small_track.with_name("fresh")
    changes: list[str] = []
    update(small_track, grader)
    for _ in range(2 if thorough else 1):
        # In-memory state must hold, too; settings are read when a track is opened.
        change_settings(small_track, chance)
        with trecexam.open_track(small_track, grader=grader) as track:
            for _ in range(5):
                for change in chance.sample(CHANGES, chance.randint(1, 2)):
                    change(small_track, chance)
                    changes.append(change.__name__)
                track.update()
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.copytree(small_track, fresh, ignore=shutil.ignore_patterns("out", "last-update.json"))
                update(fresh, grader)
                assert contents(small_track / "out") == contents(fresh / "out"), changes


@pytest.mark.parametrize("name", ["qrels.txt", "runs/run0.run"])
def test_a_file_replaced_while_it_is_read_is_not_taken_for_the_old_one(
    small_track: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    update(small_track)
    path = small_track / name
    lines = path.read_text().splitlines(keepends=True)
    other = "q1 0 q1-d00 3\nq2 0 q2-d01 1\n" if name == "qrels.txt" else "".join(lines[: len(lines) // 2])
    read, times = open_track.read_inputs, []

    def replacing(*args: Any, **options: Any) -> TrackInputs:
        inputs = read(*args, **options)
        if not times:
            (small_track / "new").write_text(other)
            (small_track / "new").replace(path)
        times.append(1)
        return inputs

    (small_track / "queries.tsv").write_text((small_track / "queries.tsv").read_text() + "q9\tnew\n")
    with monkeypatch.context() as patch:
        patch.setattr(open_track, "read_inputs", replacing)
        update(small_track)
    assert len(times) == 1
    update(small_track)
    by_steps = contents(small_track / "out")
    shutil.rmtree(small_track / "out")
    shutil.rmtree(small_track / ".trecexam")
    update(small_track)
    assert by_steps == contents(small_track / "out")


@pytest.mark.usefixtures("with_report")
def test_a_sources_file_next_to_the_judgments_is_noticed(small_track: Path) -> None:
    update(small_track)
    (small_track / "qrels.txt.sources.tsv").write_text("query_id\tdoc_id\n")
    assert update(small_track).changed
    assert b"trecexam fill" in (small_track / "out" / "report.html").read_bytes()
