"""out/history: what updates of a track write."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, make_small_track, write_run

import trecexam
from trecexam.errors import TrecexamError
from trecexam.features.history.entry import Entry
from trecexam.files import atomic as files
from trecexam.files.kept import write_kept

CONFIG = "[track]\ndepth = 8\n"


def update(root: Path, grader: HashGrader | None = None, **more: Any) -> trecexam.outputs.updates.Update:  # type: ignore[name-defined]
    with trecexam.open_track(root, grader=grader or HashGrader()) as track:
        return track.update(**more)


def entries(root: Path) -> list[Entry]:
    track = trecexam.open_track(root, grader=HashGrader())
    names = sorted((root / "out" / "history").glob("[0-9]*.json"))
    return [track.history.entry(int(path.stem)) for path in names]


def last(root: Path) -> Entry:
    return entries(root)[-1]


def log(root: Path) -> list[tuple[int, str]]:
    """(entry, run) of the lines of log.tsv, which are the rows of `history`."""
    path = root / "out" / "history" / "log.tsv"
    _, *lines = path.read_text().splitlines() if path.exists() else [""]
    found = [(int(line.split("\t")[0]), line.split("\t")[3]) for line in lines]
    rows = trecexam.open_track(root, grader=HashGrader()).history().rows
    assert found == [(row.entry, row.run) for row in rows]
    return found


def board(root: Path) -> dict[str, dict[str, float]]:
    found = json.loads((root / "out" / "leaderboard.json").read_text())
    return {
        row["run"]: {name: score["mean"] for name, score in row["scores"].items()} for row in found["runs"]
    }


def qrels(root: Path) -> dict[tuple[str, str], int]:
    lines = (root / "out" / "rubric.qrels").read_text().splitlines()
    return {(q, d): int(label) for q, _, d, label in (line.split(" ") for line in lines)}


@pytest.fixture
def logged(small_track: Path) -> Path:
    update(small_track)
    return small_track


def test_the_first_leaderboard_is_entry_1_with_all_runs_new(small_track: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert update(small_track).entry == 1
    (entry,) = entries(small_track)
    assert (entry.entry, entry.before) == (1, None)
    assert entry.cause == "the first leaderboard"
    assert {row.change for row in entry.board.runs} == {"new"}
    assert {row.run for row in entry.board.runs} == {"run0", "run1", "run2"}
    assert before <= datetime.fromisoformat(entry.when) <= datetime.now(UTC)
    assert log(small_track) == [(1, row.run) for row in entry.board.runs]


def test_an_update_that_changes_nothing_adds_no_entry(logged: Path) -> None:
    assert not update(logged).changed
    # The file is another one with the same content.
    run = logged / "runs" / "run0.run"
    run.write_text(run.read_text())
    (logged / "qrels.txt").write_text("q1 0 q1-d00 1\n")
    done = update(logged)
    assert (done.changed, done.entry) == (True, None)
    assert len(entries(logged)) == 1


def test_an_empty_track_has_no_history(small_track: Path) -> None:
    for path in (small_track / "runs").iterdir():
        path.unlink()
    assert update(small_track).entry is None
    assert log(small_track) == []
    write_run(small_track / "runs" / "a.run", {"q1": ["q1-d00"]})
    assert update(small_track).entry == 1


def test_a_dropped_run_logs_ranks_means_and_labels_before_and_after(small_track: Path) -> None:
    logged = small_track
    (logged / "runs" / "run2.run").unlink()
    update(logged)
    old_board, old_labels = board(logged), qrels(logged)
    write_run(logged / "runs" / "new.run", {q: [f"{q}-d11", f"{q}-d10", f"{q}-d00"] for q in ("q1", "q2")})
    update(logged)
    entry, new_board, new_labels = last(logged), board(logged), qrels(logged)
    assert entry.cause == "runs/new.run added"
    assert entry.files == {"added": ("runs/new.run",)}
    assert {(r.query_id, r.doc_id): (r.before, r.after) for r in entry.board.labels} == {
        key: (old_labels.get(key), new_labels.get(key))
        for key in old_labels.keys() | new_labels.keys()
        if old_labels.get(key) != new_labels.get(key)
    }
    assert entry.board.labels
    for row in entry.board.runs:
        for name, (before, after) in row.means.items():
            assert before == (old_board[row.run][name] if row.run in old_board else None)
            assert after == new_board[row.run][name]
        first = next(iter(new_board["new"]))
        better = sum(new_board[other][first] > new_board[row.run][first] for other in new_board)
        assert row.rank_after == 1 + better


def test_a_removed_run_is_gone_and_is_new_when_dropped_again(logged: Path) -> None:
    run = logged / "runs" / "run1.run"
    content = run.read_text()
    run.unlink()
    update(logged)
    gone = last(logged)
    assert gone.cause == "runs/run1.run removed"
    assert [(row.run, row.rank_after) for row in gone.board.runs if row.change == "gone"] == [("run1", None)]
    run.write_text(content)
    update(logged)
    back = last(logged)
    assert [row.run for row in back.board.runs if row.change == "new"] == ["run1"]
    assert back.after == entries(logged)[0].after


def test_an_edited_question_logs_the_query_the_item_and_its_labels(logged: Path) -> None:
    old_labels = qrels(logged)
    bank = logged / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace("question 2 of q1?", "an edited question?"))
    update(logged)
    entry, new_labels = last(logged), qrels(logged)
    assert entry.cause == "bank.questions.jsonl edited"
    changed = {key for key in old_labels if old_labels[key] != new_labels[key]}
    assert changed
    assert {(r.query_id, r.doc_id) for r in entry.board.labels if r.before != r.after} == changed
    for row in entry.board.labels:
        assert row.query_id == "q1"
        assert {*row.gained, *row.lost} <= {"q1/2"}
    moved = [row for row in entry.board.runs if row.change == "moved"]
    assert moved
    for row in moved:
        assert not row.file_changed


def test_a_changed_setting_is_logged_as_the_cause(logged: Path) -> None:
    (logged / "trecexam.toml").write_text(CONFIG + '[scores]\nmin_rating = 3\nlabel = "count"\n')
    update(logged)
    entry = last(logged)
    assert entry.cause == "[scores] min_rating 4 -> 3; [scores] label max -> count"
    assert entry.settings == {"[scores] min_rating": (4, 3), "[scores] label": ("max", "count")}


def test_settings_that_change_no_score_are_not_a_cause(logged: Path) -> None:
    (logged / "trecexam.toml").write_text(CONFIG + '[watch]\nsettle = 9.0\n[grader]\ndtype = "float32"\n')
    assert update(logged).entry is None
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    assert last(logged).cause == "runs/new.run added"


def test_a_change_without_effect_is_not_a_cause_of_the_next_entry(logged: Path) -> None:
    passages = logged / "passages.jsonl"
    passages.write_text(passages.read_text() + '{"docid": "elsewhere", "text": "no run has it"}\n')
    assert update(logged).entry is None
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    assert last(logged).cause == "runs/new.run added"


def test_another_grader_is_logged_as_the_cause(logged: Path) -> None:
    assert update(logged, HashGrader(version=2)).entry is None
    other = HashGrader(version=3)
    other.status = lambda cell: "unparsed" if cell.doc_id == "q1-d03" else "ok"
    update(logged, other)
    assert last(logged).cause == "grader: version 2 -> 3"
    assert [(row.doc_id, row.after) for row in last(logged).board.labels] == [("q1-d03", None)]


def test_rejected_files_and_judgments_are_not_a_cause(logged: Path) -> None:
    (logged / "runs" / "bad.run").write_text("q1 Q0 q1-d00 1 high bad\n")
    (logged / "qrels.txt").write_text("q1 0 q1-d00 1\n")
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    assert last(logged).cause == "runs/new.run added"


def test_a_human_label_is_logged_as_the_cause(logged: Path) -> None:
    old = qrels(logged)
    # With official judgments people judge on their scale, and change no label.
    aside = (logged / "qrels.txt").rename(logged / "aside.qrels")
    with trecexam.open_track(logged, grader=HashGrader()) as track:
        for doc_id in ("q1-d00", "q1-d01"):
            track.override("q1", doc_id, (old["q1", doc_id] + 3) % 6, who="ann", why="read it")
        aside.rename(logged / "qrels.txt")
        track.update()
    entry = last(logged)
    assert entry.cause == "overrides.tsv added"
    assert {(row.doc_id, row.before, row.after) for row in entry.board.labels} == {
        (doc_id, old["q1", doc_id], (old["q1", doc_id] + 3) % 6) for doc_id in ("q1-d00", "q1-d01")
    }
    (logged / "overrides.tsv").unlink()
    update(logged)
    assert last(logged).cause == "overrides.tsv removed"


def test_a_stopped_update_is_not_logged_and_the_next_is_compared_with_the_last_logged(
    logged: Path,
) -> None:
    (first,) = entries(logged)
    bank = logged / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace(" of q", " quite unlike q"))
    graded: list[object] = []
    assert (
        update(logged, HashGrader(batch=5), progress=graded.append, stop=lambda: bool(graded)).entry is None
    )
    assert json.loads((logged / "out" / "manifest.json").read_text())["complete"] is False
    assert len(entries(logged)) == 1
    update(logged)
    entry = last(logged)
    assert (entry.entry, entry.before) == (2, first.after)
    # Compared with the half graded outputs, labels would seem new.
    assert all(row.before is not None for row in entry.board.labels)


@pytest.mark.parametrize("damage", ["missing", "junk", "another version"])
def test_if_the_earlier_state_is_unreadable_the_entry_says_so(logged: Path, damage: str) -> None:
    state = logged / ".trecexam" / "history.json.gz"
    if damage == "missing":
        state.unlink()
    elif damage == "junk":
        state.write_bytes(b"junk")
    else:
        write_kept(state, b"{}", 99)
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    assert update(logged).entry == 2
    entry = last(logged)
    assert entry.before is None
    assert {row.change for row in entry.board.runs} == {"new"}
    assert entry.board.labels == ()
    assert "could not be read" in entry.cause
    (logged / "runs" / "new.run").unlink()
    update(logged)
    assert last(logged).cause == "runs/new.run removed"


def test_a_damaged_state_is_rebuilt_if_nothing_changed_since(logged: Path) -> None:
    state = logged / ".trecexam" / "history.json.gz"
    state.write_bytes(b"junk")
    (logged / "out" / "leaderboard.tsv").unlink()
    assert update(logged).entry is None
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    assert update(logged).entry == 2
    assert last(logged).before is not None


def test_damaged_or_deleted_outputs_are_restored_without_an_entry(logged: Path) -> None:
    (logged / "out" / "leaderboard.json").write_text("{")
    (logged / "out" / "rubric.qrels").unlink()
    assert update(logged).entry is None
    assert board(logged)
    assert len(entries(logged)) == 1


@pytest.mark.parametrize("removed", ["out", "out/history"])
def test_a_deleted_history_folder_starts_again(logged: Path, removed: str) -> None:
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    shutil.rmtree(logged / removed)
    assert update(logged).entry == 1
    (entry,) = entries(logged)
    assert entry.before is None
    assert {row.change for row in entry.board.runs} == {"new"}


def test_a_deleted_log_is_rebuilt_unchanged(logged: Path) -> None:
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    path = logged / "out" / "history" / "log.tsv"
    before = path.read_bytes()
    path.unlink()
    assert update(logged).entry is None
    assert path.read_bytes() == before


def test_the_log_is_append_only(logged: Path) -> None:
    path = logged / "out" / "history" / "log.tsv"
    before = path.read_bytes()
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    update(logged)
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes()) > len(before)


def test_old_entries_may_be_deleted(logged: Path) -> None:
    (logged / "out" / "history" / "000001.json").unlink()
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    assert update(logged).entry == 2
    assert last(logged).before is not None
    with pytest.raises(TrecexamError, match="no entry 1: there are 2 to 2"):
        trecexam.open_track(logged, grader=HashGrader()).history.entry(1)


def test_an_unwritable_history_leaves_the_outputs_unchanged(
    logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outputs() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (logged / "out").rglob("*") if path.is_file()}

    before = outputs()
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d03", "q1-d11"]})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trecexam.files.atomic.os.fsync", full)
        with pytest.raises(TrecexamError, match=r"history/000002\.json: cannot be written: No space left"):
            update(logged)
    assert outputs() == before
    assert update(logged).entry == 2


class _Killed(BaseException):
    """Simulates kill -9: nothing in the program catches it."""


@pytest.mark.parametrize("changed_meanwhile", [False, True])
def test_a_kill_between_any_two_writes_neither_loses_nor_duplicates_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed_meanwhile: bool
) -> None:
    replace = files.replace_together
    writes = 0
    # The report's files come after the history.
    first = make_small_track(tmp_path / "first", config="[track]\ndepth = 8\n[report]\nwrite = false\n")
    update(first)
    for survives in range(100):
        # Each additional file is one more moment.
        root = Path(shutil.copytree(first, tmp_path / str(survives)))
        write_run(root / "runs" / "new.run", {"q1": ["q1-d03", "q1-d11"]})
        writes = 0

        def until_killed(contents: Any, survives: int = survives, **options: Any) -> list[Path]:
            nonlocal writes
            if writes == survives:
                raise _Killed
            writes += 1
            return replace(contents, **options)

        with monkeypatch.context() as patch:
            patch.setattr("trecexam.files.atomic.replace_together", until_killed)
            try:
                update(root)
            except _Killed:
                killed = True
            else:
                killed = False
        if changed_meanwhile:
            write_run(root / "runs" / "more.run", {"q2": ["q2-d03", "q2-d11"]})
        update(root)
        told = entries(root)
        files_added = [name for entry in told for name in entry.files.get("added", ())]
        assert sorted(files_added) == (
            ["runs/more.run", "runs/new.run"] if changed_meanwhile else ["runs/new.run"]
        )
        assert [entry.entry for entry in told] == list(range(1, len(told) + 1))
        for one, two in pairwise(told):
            assert two.before == one.after
        assert list(dict.fromkeys(number for number, _ in log(root))) == [entry.entry for entry in told]
        assert len(set(log(root))) == len(log(root))
        assert not update(root).changed
        if not killed:
            break
    assert writes > 10


def test_a_run_renamed_because_of_another_file_is_not_new(logged: Path) -> None:
    write_run(logged / "runs" / "sub" / "other.run", {"q1": ["q1-d00"]}, tag="run0")
    update(logged)
    rows = {row.run: row for row in last(logged).board.runs}
    assert (rows["run0"].change, rows["sub/other"].change) != ("gone", "new")
    assert "run0" in {row.was or row.run for row in rows.values()}


def test_tied_runs_share_a_rank_and_another_tied_run_moves_none(
    small_track: Path,
) -> None:
    for path in (small_track / "runs").iterdir():
        path.unlink()
    for name in "bcd":
        write_run(small_track / "runs" / f"{name}.run", {"q1": ["q1-d00"]})
    update(small_track)
    write_run(small_track / "runs" / "a.run", {"q1": ["q1-d00"]})
    update(small_track)
    assert [(row.run, row.rank_after, row.change) for row in last(small_track).board.runs] == [
        ("a", 1, "new"),
        ("b", 1, "same"),
        ("c", 1, "same"),
        ("d", 1, "same"),
    ]


def test_manifest_and_update_count_only_the_outputs(logged: Path) -> None:
    manifest = json.loads((logged / "out" / "manifest.json").read_text())
    assert not any("history" in name for name in manifest["outputs"])
    write_run(logged / "runs" / "new.run", {"q1": ["q1-d00"]})
    out = logged / "out"
    assert {path.parent for path in update(logged).written} == {out}


def test_a_file_name_that_is_not_valid_text_is_escaped(logged: Path) -> None:
    name = b"b\xff.run".decode("utf-8", "surrogateescape")
    for path in (logged / "runs" / "c.run", logged / "runs" / name):
        write_run(path, {"q1": ["q1-d00", "q1-d01"]}, tag="same")
    update(logged)
    rows = {row.run: row for row in last(logged).board.runs}
    assert rows["b\\udcff"].change == "new"
    assert "runs/b\\udcff.run" in last(logged).cause
    assert "b\\udcff" in {run for _, run in log(logged)}
    (logged / "runs" / name).write_text("q1 Q0 q1-d11 1 1 same\n")
    update(logged)
    assert {row.run: row for row in last(logged).board.runs}["b\\udcff"].file_changed
