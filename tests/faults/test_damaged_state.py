"""After any damage to `.trecexam/`, the next update writes the same outputs as without it."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from learnable import WordEncoder, fit_once, make_learnable
from support import HashGrader, make_small_track, update

import trecexam
import trecexam.extensions.learn.learned_pool as learning
from trecexam.files.kept import HEAD, sealed
from trecexam.files.track_lock import open_lock_file
from trecexam.inputs import run_columns

#: All files that an update of the track below caches, besides store and locks.
KEPT = ("codes", "last-update.json", "runs/*.arrow", "vectors-*")
#: After this many seconds an update counts as hanging.
PATIENCE = 100


@pytest.fixture(scope="module")
def patched() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_columns, "LEAST", 1)
        patch.setattr(learning, "track_encoder", lambda track: WordEncoder())
        fit_once(patch)
        yield


@pytest.fixture(scope="module")
def track(patched: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track with one update."""
    root = make_learnable(tmp_path_factory.mktemp("damaged") / "track")
    with (root / "trecexam.toml").open("a") as config:
        config.write("[learn]\nupdate = true\n")
    # One run is longer than the ranks that are stored separately.
    lines = [f"q0 Q0 q0-d{rank:02} {rank} {200 - rank} long\n" for rank in range(150)]
    (root / "runs" / "long.run").write_text("".join(lines))
    update(root)
    return root


@pytest.fixture(scope="module")
def expected(track: Path) -> dict[str, bytes]:
    return outputs(track)


@pytest.fixture(autouse=True)
def none_hangs() -> Iterator[None]:
    """An update that waits for a pipe fails instead."""

    def fail(*_: object) -> None:
        raise AssertionError("hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def outputs(root: Path) -> dict[str, bytes]:
    paths = sorted(path for path in (root / "out").rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def kept_files(root: Path) -> list[Path]:
    state = root / ".trecexam"
    paths = sorted(path for path in state.rglob("*") if path.is_file() and path.stat().st_size)
    return [path for path in paths if not path.name.startswith("grades.sqlite")]


def test_all_cached_files_of_an_update_are_covered_by_these_tests(track: Path) -> None:
    state = track / ".trecexam"
    assert kept_files(track) == sorted(path for pattern in KEPT for path in state.glob(pattern))
    assert all(is_whole(path) for path in kept_files(track))


def is_whole(path: Path) -> bool:
    """Rows of vectors have separate digests."""
    begins = b"SQLite format 3" if path.suffix == ".sqlite" else b"trecexam-kept "
    return path.read_bytes().startswith(begins)


def deleted(path: Path, _: random.Random) -> None:
    path.unlink()


def other_version(path: Path, _: random.Random) -> None:
    content = path.read_bytes()
    if path.suffix == ".sqlite":
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE vectors RENAME TO others")
        connection.close()
        return
    end = HEAD + int(content.split(None, 2)[1])
    path.write_bytes(sealed(path.name, content[HEAD:end], 99) + content[end:])


def cut(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def flip_after_the_head(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(HEAD, len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def another_file(path: Path, rng: random.Random) -> None:
    others = [other for other in kept_files(path.parents[path.parent.name == "runs"].parent) if other != path]
    path.write_bytes(rng.choice(others).read_bytes())


def deep_json(path: Path, _: random.Random) -> None:
    path.write_bytes(b"[" * 200_000 + b"]" * 200_000)


def pipe(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path, _: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (
    deleted,
    other_version,
    cut,
    flip,
    flip_after_the_head,
    another_file,
    deep_json,
    pipe,
    device,
    folder,
)


@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=[pytest.mark.slow] * (n % 2)) for n in range(len(DAMAGES))]
)
def test_damaged_cache_files_are_written_again(track: Path, expected: dict[str, bytes], first: int) -> None:
    """All cached files at once, each with its own damage; in ten updates each file has each damage."""
    rng = random.Random(first)
    paths = [rng.choice(sorted((track / ".trecexam").glob(pattern))) for pattern in KEPT]
    damages = {path: DAMAGES[(first + place) % len(DAMAGES)] for place, path in enumerate(paths)}
    # The content of another file is used while that is undamaged.
    for path, damage in sorted(damages.items(), key=lambda pair: pair[1] is not another_file):
        damage(path, rng)
    # Otherwise the update would have nothing to do.
    (track / "out" / "leaderboard.tsv").unlink()
    (track / "out" / "learned.tsv").unlink()
    update(track)
    assert outputs(track) == expected
    assert all(map(is_whole, paths))


def test_cached_files_of_several_graders_may_be_damaged_too(tmp_path: Path) -> None:
    settings = (
        "[track]\ndepth = 4\n[report]\nwrite = false\n[graders.rubric]\n[graders.mini]\nkind = 'rubric'\n"
    )
    root = make_small_track(tmp_path / "track", config=settings)

    def update_both() -> dict[str, bytes]:
        graders = {"rubric": HashGrader(), "mini": HashGrader()}
        with trecexam.open_track(root, graders=graders) as opened:
            opened.update()
        return outputs(root)

    expected = update_both()
    kept = [path.relative_to(root / ".trecexam") for path in kept_files(root)]
    assert {str(path) for path in kept} >= {"last-update.json", "mini/codes"}
    for number, damage in enumerate((deleted, other_version, cut, flip)):
        for path in kept:
            damage(root / ".trecexam" / path, random.Random(number))
        # The first outputs of all have to be made again, too.
        (root / "out" / "leaderboard.tsv").unlink()
        assert update_both() == expected
        assert kept == [path.relative_to(root / ".trecexam") for path in kept_files(root)]


@pytest.mark.slow
def test_an_output_that_is_no_longer_a_regular_file_is_written_again(
    track: Path, expected: dict[str, bytes]
) -> None:
    names = ["leaderboard.tsv", "manifest.json", "learned.json", "learned-leaderboard.tsv", "report.html"]
    names += [next(name[4:] for name in expected if name.endswith(".svg"))]
    for name, damage in zip(names, cycle((pipe, device, folder, deep_json)), strict=False):
        damage(track / "out" / name, random.Random(0))
    update(track)
    assert outputs(track) == expected
    assert not any((track / "out" / name).is_symlink() for name in names)


def test_a_lock_that_is_not_a_file_is_reported(track: Path) -> None:
    lock = track / ".trecexam" / "lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)
    with trecexam.open_track(track) as opened:
        opened.status()
    with pytest.raises(
        trecexam.TrecexamError, match=r"lock: is a folder, a pipe or a device, not a file: remove it"
    ):
        open_lock_file(lock, 0o644)
    lock.unlink()
