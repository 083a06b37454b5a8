"""`export pack`, `init --from PACK` and `watch --once` of the track that it makes."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import RECORDED, HashGrader, make_small_track, record_grades, switch_report_on, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.extensions.pack.packing import unpack
from trecexam.graders import available

Capture = pytest.CaptureFixture[str]


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]


def forged(path: Path, target: Path, change: Callable[[dict[str, bytes]], None] = lambda files: None,
           *more: tarfile.TarInfo) -> Path:  # fmt: skip
    """A pack with other files, and with more members."""
    files = members(path)
    change(files)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in more:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    target.write_bytes(gzip.compress(buffer.getvalue()))
    return target


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track that a grader graded which nobody else has, and its pack beside it."""
    root = make_small_track(tmp_path_factory.mktemp("pack") / "track", queries=2, docs=5, items=2)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        track.export.pack(root.parent / "p.tar.gz")
    return root.parent / "p.tar.gz"


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the grader of the settings fails."""

    def make(*_: object) -> None:
        raise AssertionError("the model was asked for")

    object.__setattr__(available()["embedding"], "create", make)


@pytest.fixture(autouse=True)
def _restored() -> object:
    factory = available()["embedding"]
    create = factory.create
    yield None
    object.__setattr__(factory, "create", create)


def outputs(root: Path) -> dict[str, bytes]:
    paths = (path for path in (root / "out").rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in paths
        if path.name not in ("history.tsv", "manifest.json")
    }


def test_out_is_made_again_from_a_pack_without_the_model(
    packed: Path, tmp_path: Path, capsys: Capture, no_model: None
) -> None:
    assert run(["init", str(tmp_path / "again"), "--from", str(packed)]) == 0
    assert "with the grades of" in capsys.readouterr().err
    assert run(["watch", str(tmp_path / "again"), "--once"]) == 0
    said = capsys.readouterr().err
    assert "out/ is the same as in the pack: " in said
    assert "nothing to grade" in said
    assert outputs(tmp_path / "again") == outputs(packed.parent / "track")


def test_raw_answers_statuses_and_environments_are_kept(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track", queries=1, docs=4, items=2)
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if cell.doc_id.endswith("1") else "ok"
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        track.export.pack(tmp_path / "p.tar.gz")
    unpack(tmp_path / "p.tar.gz", tmp_path / "again")
    with trecexam.open_track(tmp_path / "again") as again, trecexam.open_track(root, grader=grader) as track:
        assert sorted(map(str, again.grades())) == sorted(map(str, track.grades()))
        again.update()
        again.export.pack(tmp_path / "q.tar.gz")
    assert members(tmp_path / "q.tar.gz")["grades.jsonl"] == members(tmp_path / "p.tar.gz")["grades.jsonl"]


def test_two_packs_of_a_track_are_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        with trecexam.open_track(packed.parent / "track", grader=HashGrader()) as track:
            track.export.pack(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == packed.read_bytes()


def test_files_that_differ_are_named_with_the_input_that_differs(
    packed: Path, tmp_path: Path, capsys: Capture, no_model: None
) -> None:
    root = tmp_path / "again"
    unpack(packed, root)
    write_run(root / "runs" / "new.run", {"q1": ["q1-d00", "q1-d01"]})
    assert run(["watch", str(root), "--once"]) == 0
    said = capsys.readouterr().err
    assert "of out/ differ from the pack: " in said
    assert "leaderboard.tsv" in said
    assert "other inputs: runs/new.run" in said


def test_a_cell_that_the_pack_lacks_is_graded_by_the_model_or_says_so(
    packed: Path, tmp_path: Path, no_model: None
) -> None:
    root = tmp_path / "again"
    unpack(packed, root)
    bank = root / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace("question 1 of q1?", "another question?"))
    with trecexam.open_track(root) as track, pytest.raises(AssertionError, match="the model was asked for"):
        track.update()


def test_peoples_ratings_and_a_recording_are_packed(tmp_path: Path, capsys: Capture) -> None:
    root = make_small_track(tmp_path / "track")
    record_grades(root)
    (root / "trecexam.toml").write_text(RECORDED)
    switch_report_on(root)
    rated = ["override", str(root), "--query", "q1", "--doc", "q1-d00", "--rating", "2", "--who", "a"]
    assert run([*rated, "--why", "b"]) == run(["watch", str(root), "--once"]) == 0
    assert run(["export", "pack", str(root), "-o", str(tmp_path / "p.tar.gz")]) == 0
    assert run(["init", str(tmp_path / "again"), "--from", str(tmp_path / "p.tar.gz")]) == 0
    assert run(["watch", str(tmp_path / "again"), "--once"]) == 0
    assert "out/ is the same as in the pack" in capsys.readouterr().err
    assert outputs(tmp_path / "again") == outputs(root)
    (tmp_path / "again" / ".trecexam" / "pack.json").write_text("{")
    assert run(["watch", str(tmp_path / "again"), "--once"]) == 0
    assert ".trecexam/pack.json is damaged: out/ is not compared" in capsys.readouterr().err


def test_a_track_is_not_packed_before_its_out_is_up_to_date_or_without_a_grader(
    packed: Path, tmp_path: Path, capsys: Capture
) -> None:
    root = Path(shutil.copytree(packed.parent / "track", tmp_path / "track"))
    write_run(root / "runs" / "new.run", {"q1": ["q1-d00", "q1-d01"]})
    for old in (root, make_small_track(tmp_path / "without-out")):
        with (
            trecexam.open_track(old, grader=HashGrader()) as track,
            pytest.raises(TrecexamError, match="out/ is old: `trecexam watch "),
        ):
            track.export.pack(tmp_path / "p")
    with (root / "trecexam.toml").open("a") as settings:
        settings.write('[grader]\nmodel = "nowhere/at-all-x/y"\n')
    assert run(["export", "pack", str(root), "-o", str(tmp_path / "p")]) == 2
    assert "model 'nowhere/at-all-x/y' is not a folder here" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


def test_graders_with_the_same_settings_keep_their_own_answers(
    tmp_path: Path, capsys: Capture, no_model: None
) -> None:
    root = make_small_track(
        tmp_path / "track",
        config="[track]\ndepth = 8\n[graders.a]\nkind = 'rubric'\n[graders.b]\nkind = 'rubric'\n",
    )
    graders = {"a": HashGrader(), "b": HashGrader(version=2)}
    graders["b"].status = lambda cell: "refused" if cell.doc_id.endswith("1") else "ok"
    with trecexam.open_track(root, graders=graders) as track:
        track.update()
        track.export.pack(tmp_path / "p.tar.gz")
    assert run(["init", str(tmp_path / "again"), "--from", str(tmp_path / "p.tar.gz")]) == 0
    assert run(["watch", str(tmp_path / "again"), "--once"]) == 0
    assert "out/ is the same as in the pack" in capsys.readouterr().err
    assert outputs(tmp_path / "again") == outputs(root)


def test_a_track_with_files_elsewhere_is_not_packed(tmp_path: Path, capsys: Capture) -> None:
    root = make_small_track(tmp_path / "track")
    (tmp_path / "queries.tsv").write_text("q1\ttext\n")
    (root / "trecexam.toml").write_text('[track]\nqueries = "../queries.tsv"\n')
    assert run(["export", "pack", str(root), "-o", str(tmp_path / "p")]) == 2
    assert (
        "`queries` in trecexam.toml names '../queries.tsv', which is not in the track"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "p").exists()


def refused(pack: Path, tmp_path: Path, reason: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TrecexamError, match=reason):
        unpack(pack, tmp_path / "again")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    [
        *("../escape", "track/../../escape", "/etc/passwd", "track//x", "track/.trecexam/lock", "track\\x"),
        "track/a\nb",
    ],
)
def test_a_name_that_leads_outside_is_refused_before_anything_is_written(
    packed: Path, tmp_path: Path, name: str
) -> None:
    bad = forged(packed, tmp_path / "p", lambda files: files.update({name: b"x"}))
    refused(bad, tmp_path, "or points outside")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE]
)
def test_a_link_a_device_and_a_folder_are_refused(packed: Path, tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("track/more")
    info.type, info.linkname = kind, "/etc/passwd"
    refused(
        forged(packed, tmp_path / "p", lambda files: None, info), tmp_path, "is a link, a folder or a device"
    )


def test_a_file_twice_and_too_many_bytes_are_refused(packed: Path, tmp_path: Path) -> None:
    twice, bomb = tarfile.TarInfo("track/queries.tsv"), tarfile.TarInfo("track/bomb")
    refused(forged(packed, tmp_path / "p", lambda files: None, twice), tmp_path, "is there twice")
    bomb.size = 2**27
    refused(forged(packed, tmp_path / "p", lambda files: None, bomb), tmp_path, "unpack to too many bytes")
    for name, reason in (("track/" + "x" * 999, "File name too long"), ("track/runs", "cannot be written")):
        bad = forged(packed, tmp_path / "p", lambda files, name=name: files.update({name: b"x"}))  # type: ignore[misc]
        refused(bad, tmp_path, reason)


def test_damage_and_files_of_another_kind_are_refused(packed: Path, tmp_path: Path) -> None:
    content = packed.read_bytes()
    for number, bad in enumerate((b"", b"text", content[: len(content) // 2], gzip.compress(b"x" * 2000))):
        path = tmp_path / f"bad{number}"
        path.write_bytes(bad)
        refused(path, tmp_path, "nothing was unpacked: .*; a pack is a file of `trecexam export pack`")
    for name in ("../x", "/etc/passwd"):
        settings = {"track/trecexam.toml": f'[track]\nruns = "{name}"\n'.encode()}
        outside = forged(packed, tmp_path / "p", lambda files, settings=settings: files.update(settings))  # type: ignore[misc]
        refused(outside, tmp_path, "which is not in the track")
    whole = [0, "aa", "bb", 5, "ok", "reply", None, None]
    for at, value in enumerate((9, "zz", 7, 6, "other", None, [None], 2**70)):
        line = json.dumps([*whole[:at], value, *whole[at + 1 :]]).encode()
        bad = forged(packed, tmp_path / "p", lambda files, line=line: files.update({"grades.jsonl": line}))  # type: ignore[misc]
        refused(bad, tmp_path, "nothing was unpacked")
    for name in ("manifest.json", "grades.jsonl", "track/trecexam.toml"):
        lacking = forged(packed, tmp_path / "p", lambda files, name=name: files.pop(name))  # type: ignore[misc]
        refused(lacking, tmp_path, f"it has no {name}")


def test_a_folder_with_files_and_other_options_are_refused(
    packed: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert run(["init", str(tmp_path / "full"), "--from", str(packed)]) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err
    assert run(["init", str(tmp_path / "new"), "--from", str(packed), "--rag"]) == 2
    assert "give no other option with it" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
