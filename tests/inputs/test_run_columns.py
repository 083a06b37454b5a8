"""Large runs as columns on disk: equal to their files, and safe after any damage."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import HashGrader, write_run

import converters
import trecexam
from converters import Run
from trecexam.inputs import run_columns
from trecexam.inputs.run_columns import RunColumns

#: Passages of each query.
COUNTS = {"q3": 1, "q1": 260, "q2": 100, "ü-q": 101, "q10": 99, "q4": 3}
DEPTHS = (0, 1, 5, 100, 259, 260, 1000)


def run_file(path: Path, counts: dict[str, int] = COUNTS, tag: str = "bm25", seed: int = 0) -> Path:
    """A run with ties, ids of many lengths, and its lines in no order."""
    rng = random.Random(seed)
    lines = [
        f"{query_id} Q0 {'é' * (place % 7)}d{place} 0 {rng.randint(0, 40) / 8} {tag}\n"
        for query_id, count in counts.items()
        for place in rng.sample(range(1000), count)
    ]
    rng.shuffle(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines))
    return path


def check_equal(run: Run, expected: Run) -> None:
    """Both give the same for every attribute."""
    assert (run.name, run.query_ids, len(run)) == (expected.name, expected.query_ids, len(expected))
    assert list(run) == list(expected)
    assert run.doc_ids.to_pylist() == expected.doc_ids.to_pylist()
    assert run.doc_ids.type == expected.doc_ids.type
    assert run.spans == expected.spans
    np.testing.assert_array_equal(run.scores, expected.scores)
    np.testing.assert_array_equal(run.offsets, expected.offsets)
    for query_id in (*expected.query_ids, "no such query"):
        assert (query_id in run) == (query_id in expected)
        assert run.count(query_id) == expected.count(query_id)
        for depth in (None, *DEPTHS):
            assert run.ranking(query_id, depth) == expected.ranking(query_id, depth)
    for depth in DEPTHS:
        offsets, doc_ids = run.top(depth)
        expected_offsets, expected_ids = expected.top(depth)
        np.testing.assert_array_equal(offsets, expected_offsets)
        assert doc_ids.to_pylist() == expected_ids.to_pylist()


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is large."""
    monkeypatch.setattr(run_columns, "LEAST", 1)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """After this call, reading a run from its own file fails the test."""

    def refuse(*_: object) -> None:
        raise AssertionError("a run was read from its own file")

    return lambda: monkeypatch.setattr(converters, "read", refuse)


@pytest.fixture
def columns(tmp_path: Path) -> Path:
    return tmp_path / "state" / "runs"


def test_a_run_of_5_000_entries_is_read_from_its_columns_from_the_second_read(
    tmp_path: Path, columns: Path, refused: Callable[[], None]
) -> None:
    path = run_file(tmp_path / "a.run", {f"q{number}": 250 for number in range(20)})
    expected = converters.read(path, "run")
    assert len(expected) == run_columns.LEAST == 5_000
    check_equal(RunColumns(columns).read(path), expected)
    refused()
    again = RunColumns(columns).read(path)
    assert list(again) == list(expected)
    assert all(again.ranking(q, 120) == expected.ranking(q, 120) for q in expected.query_ids)


@pytest.mark.usefixtures("_small")
@given(
    st.dictionaries(
        st.text("abü\u00a0\U0001f600", min_size=1, max_size=3),
        st.dictionaries(
            st.text("xyé\ufffd\U0001f600", min_size=1, max_size=4),
            st.floats(-1e30, 1e30) | st.sampled_from([0.0, -0.0, 1.0, 1 + 1e-12]),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_any_run_is_the_same_from_its_columns(
    tmp_path_factory: pytest.TempPathFactory, ranked: dict[str, dict[str, float]]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "a.run"
    path.write_text(
        "".join(
            f"{q}\tQ0\t{d}\t1\t{score!r}\tt\n" for q, docs in ranked.items() for d, score in docs.items()
        ),
        newline="\n",
    )
    expected = converters.read(path, "run")
    check_equal(RunColumns(folder / "state").read(path), expected)
    check_equal(RunColumns(folder / "state").read(path), expected)
    assert len(list((folder / "state").iterdir())) == 1


@pytest.mark.usefixtures("_small")
def test_a_file_replaced_by_one_of_the_same_size_and_time_is_read_again(
    tmp_path: Path, columns: Path
) -> None:
    path = run_file(tmp_path / "a.run", tag="one")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    RunColumns(columns).read(path)
    other = run_file(tmp_path / "b.run", tag="two")
    os.utime(other, ns=times)
    assert other.stat().st_size == path.stat().st_size
    other.replace(path)
    assert RunColumns(columns).read(path).name == "two"


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(path.stat().st_size))


def another_run(path: Path) -> None:
    other = RunColumns(path.parent.parent / "others")
    other.read(run_file(path.parent.parent / "other.run", seed=3))
    next((path.parent.parent / "others").iterdir()).replace(path)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize(
    "damage",
    [
        garbage,
        another_run,
        Path.unlink,
        a_folder,
        a_pipe,
        a_device,
    ],
    ids=lambda damage: damage.__name__,
)
def test_damaged_foreign_or_missing_columns_do_no_harm(
    tmp_path: Path, columns: Path, damage: Callable[[Path], None]
) -> None:
    path = run_file(tmp_path / "a.run")
    expected = converters.read(path, "run")
    RunColumns(columns).read(path)
    (of_run,) = columns.iterdir()
    damage(of_run)
    check_equal(RunColumns(columns).read(path), expected)
    check_equal(RunColumns(columns).read(path), expected)


@pytest.mark.usefixtures("_small")
def test_with_an_unwritable_folder_the_run_is_still_read(tmp_path: Path) -> None:
    path = run_file(tmp_path / "a.run")
    (tmp_path / "state").write_text("no folder")
    for folder in (tmp_path / "state", tmp_path / "state" / "runs"):
        check_equal(RunColumns(folder).read(path), converters.read(path, "run"))
        RunColumns(folder).forget(but=set())
    assert (tmp_path / "state").read_text() == "no folder"


@pytest.mark.usefixtures("_small")
def test_with_a_full_disk_the_run_is_still_read_and_no_partial_file_is_left(
    tmp_path: Path, columns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = run_file(tmp_path / "a.run")
    with monkeypatch.context() as patch:
        patch.setattr("trecexam.files.atomic.os.fsync", full)
        check_equal(RunColumns(columns).read(path), converters.read(path, "run"))
    assert list(columns.iterdir()) == []


@pytest.mark.usefixtures("_small")
def test_a_file_that_changes_while_it_is_read_leaves_no_columns(
    tmp_path: Path, columns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run_file(tmp_path / "a.run")
    read = converters.read

    def slowly(*arguments: object) -> Run:
        run: Run = read(*arguments)  # type: ignore[arg-type]
        run_file(path, {"q1": 2}, seed=9)
        return run

    with monkeypatch.context() as patch:
        patch.setattr(converters, "read", slowly)
        assert len(RunColumns(columns).read(path)) == sum(COUNTS.values())
    assert not columns.exists()
    check_equal(RunColumns(columns).read(path), read(path, "run"))


def outputs(root: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted((root / "out").iterdir())
        if path.is_file() and path.name not in ("manifest.json", "history.tsv")
    }


@pytest.mark.usefixtures("_small")
def test_outputs_are_the_same_from_columns_and_removing_a_run_deletes_its_columns(
    small_track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def update() -> None:
        with trecexam.open_track(small_track, grader=HashGrader()) as track:
            track.update()

    # Two with the same tag are named by their paths.
    for name in ("one", "two"):
        write_run(small_track / "runs" / f"{name}.run", {"q1": [f"q1-d{n:02}" for n in (3, 1, 2)]}, "same")
    with monkeypatch.context() as patch:
        patch.setattr(run_columns, "LEAST", 10**9)
        update()
    expected, columns = outputs(small_track), small_track / ".trecexam" / "runs"
    assert not columns.exists()
    for _ in range(2):
        (small_track / "out" / "leaderboard.tsv").unlink()
        (small_track / ".trecexam" / "last-update.json").unlink()
        update()
        assert outputs(small_track) == expected
        assert len(list(columns.iterdir())) == 5
    (small_track / "runs" / "one.run").unlink()
    update()
    assert len(list(columns.iterdir())) == 4


def test_a_file_replaced_while_its_columns_are_written_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_columns, "LEAST", 1)
    path, packed = run_file(tmp_path / "a.run"), run_columns._packed

    def replacing(*args: object) -> bytes:
        run_file(tmp_path / "b.run", seed=1).replace(path)
        return packed(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(run_columns, "_packed", replacing)
        RunColumns(tmp_path / "columns").read(path)
    check_equal(RunColumns(tmp_path / "columns").read(path), converters.read(path, "run"))


@pytest.mark.parametrize(("write", "times"), [(True, 20), (False, 100)])
def test_no_flipped_bit_and_no_lost_byte_gives_another_run(
    tmp_path: Path, columns: Path, monkeypatch: pytest.MonkeyPatch, write: bool, times: int
) -> None:
    monkeypatch.setattr(run_columns, "LEAST", 1)
    path, rng = run_file(tmp_path / "a.run"), random.Random(0)
    expected = converters.read(path, "run")
    RunColumns(columns).read(path)
    (of_run,) = columns.iterdir()
    whole = of_run.read_bytes()
    for number in range(times):
        damaged = bytearray(whole)
        bit = rng.randrange(8 * len(whole))
        damaged[bit // 8] ^= 1 << bit % 8
        of_run.write_bytes(damaged if number % 4 else damaged[: bit // 8])
        run = RunColumns(columns, write=write).read(path)
        assert run.top(10)[1] == expected.top(10)[1]
        assert list(run) == list(expected)
