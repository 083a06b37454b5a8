"""`trecexam pack` and `trecexam reproduce`: one file, from which all of out/ is computed again."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from pathlib import Path

import pytest
from outside import outside
from packs import SHIPPED, forged, jsonl, lines_of, pack_demo, parts_of
from scripted_server import KEY, Exchange, serving
from support import QUIET, HashGrader, make_small_track, switch_report_on, tsv_rows

import converters
import trecexam
from trecexam.cli.main import run
from trecexam.cli.reading import answer
from trecexam.errors import TrecexamError
from trecexam.extensions.pack.reproducing import Reproduction, reproduce
from trecexam.line import inputs, texts

OF_DATASET = {"queries": "queries.tsv", "qrels": "qrels.txt", "passages": "passages.jsonl"}


def graded_by_hash(root: Path, config: str = QUIET, **shape: int) -> Path:
    """A track whose grader exists only in this file, with its pack next to it as NAME.trecexam."""
    make_small_track(root, config=config, **shape)
    switch_report_on(root)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        track.pack(root.with_suffix(".trecexam"))
    return root.with_suffix(".trecexam")


def outcomes(done: Reproduction) -> dict[str, tuple[str, str]]:
    return {name: (outcome, why) for name, outcome, why in done.files if outcome != "same"}


def test_the_demo_with_its_two_graders_is_reproduced_without_its_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "demo"]) == 0
    # A rating by a person belongs to one text, named by its digest.
    query, _, doc, label = Path("demo/out/rubric.qrels").read_text().split()[:4]
    rated = [
        "--query",
        query,
        "--doc",
        doc,
        "--rating",
        str((int(label) + 1) % 4),
        "--who",
        "ann",
        "--why",
        "x",
    ]
    assert run(["override", "demo", *rated]) == run(["watch", "demo", "--once"]) == 0
    assert run(["pack", "demo", "-o", "paper.trecexam"]) == 0
    capsys.readouterr()
    assert run(["reproduce", "paper.trecexam"]) == 0
    said = capsys.readouterr()
    assert "reproduced: all 51 files of out/ are the same, computed from 2,973 answers" in said.err
    assert "ann" in Path("paper/out/human.tsv").read_text()
    assert {line.split("\t")[1] for line in said.out.splitlines()[1:]} == {"same"}
    files = [
        path.relative_to("demo/out") for path in Path("demo/out").rglob("*.*") if "history" not in path.parts
    ]
    for name in {*files} - {path for path in files if path.suffix == ".html" or path.name == "manifest.json"}:
        assert (Path("paper/out") / name).read_bytes() == (Path("demo/out") / name).read_bytes()
    of_demo = [json.loads(line)["text"] for line in Path("demo/passages.jsonl").read_text().splitlines()]
    whole = b"".join(parts_of(Path("paper.trecexam")).values()).decode(errors="replace")
    assert len(of_demo) == 96
    assert not any(text in whole for text in of_demo)
    # The reproduced track works: packing it again and merging with the first adds nothing.
    assert run(["pack", "paper", "-o", "again.trecexam"]) == 0
    assert parts_of(Path("again.trecexam"))["texts.jsonl"] == parts_of(Path("paper.trecexam"))["texts.jsonl"]
    assert (
        parts_of(Path("again.trecexam"))["answers.jsonl"] == parts_of(Path("paper.trecexam"))["answers.jsonl"]
    )
    assert run(["reproduce", "paper.trecexam"]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_terminal_shows_the_files_that_are_not_the_same_and_wide_shows_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trecexam.cli.show.on_terminal", lambda: True)
    same, differs = ("leaderboard.tsv", "same", ""), ("rubric.qrels", "differs", "why")
    answer(Reproduction((same, differs), Path("track"), ("a note",)))
    shown = capsys.readouterr().out
    assert "rubric.qrels" in shown
    assert "leaderboard.tsv" not in shown
    answer(Reproduction((same, differs), Path("track"), ("a note",)), wide=True)
    assert "leaderboard.tsv" in capsys.readouterr().out
    answer(Reproduction((same,), Path("track"), ("a note",)))
    assert capsys.readouterr() == ("", "a note\n")


def test_the_same_track_gives_identical_bytes_and_each_part_has_its_digest(tmp_path: Path) -> None:
    first = graded_by_hash(tmp_path / "track")
    shutil.copytree(tmp_path / "track", tmp_path / "elsewhere" / "copy")
    for path in (tmp_path / "elsewhere").rglob("*"):
        path.touch()
    with trecexam.open_track(tmp_path / "elsewhere" / "copy", grader=HashGrader()) as track:
        track.pack(tmp_path / "second.trecexam")
    assert first.read_bytes() == (tmp_path / "second.trecexam").read_bytes()
    parts = parts_of(first)
    manifest = json.loads(parts.pop("manifest.json"))
    assert {name: each["sha256"] for name, each in manifest["parts"].items()} == {
        name: hashlib.sha256(part).hexdigest() for name, part in parts.items()
    }
    assert parts["track/runs/run0.run"] == (tmp_path / "track" / "runs" / "run0.run").read_bytes()
    # Answers are matched by content only.
    answers, text = lines_of(first, "answers.jsonl"), "passage 3 about q1"
    assert len(answers) == len({(row["passage"], row["item"]) for row in answers})
    assert hashlib.sha256(text.encode()).hexdigest() in {row["passage"] for row in answers}
    (source,) = lines_of(first, "graders.jsonl")
    assert source["identity"] == HashGrader().identity
    assert {row["by"] for row in answers} == {source["by"]}


@pytest.mark.parametrize("least", [1, 19, 90])
def test_an_unavailable_grader_is_reproduced_and_ungradable_texts_stay_ungradable(
    tmp_path: Path, least: int
) -> None:
    config = f"[track]\ndepth = 12\nmin_text = {least}\n[report]\nwrite = false\n"
    pack = graded_by_hash(tmp_path / "track", config, docs=12)
    done = reproduce(pack, tmp_path / "again")
    assert done.reproduced, outcomes(done)
    n = {1: 3 * 12 * 4, 19: 3 * 2 * 4, 90: 0}[least]
    assert len(lines_of(pack, "answers.jsonl") if n else ()) == n


def test_rejected_lines_of_files_that_are_not_in_the_pack_are_reproduced(tmp_path: Path) -> None:
    root = tmp_path / "track"
    make_small_track(root, config=QUIET)
    switch_report_on(root)
    first = json.loads((root / "passages.jsonl").read_text().splitlines()[0])
    with (root / "passages.jsonl").open("a") as file:
        file.write(json.dumps({**first, "text": "Another text."}) + '\n{"docid"\n')
    (root / "runs" / "gone.run").symlink_to("nowhere")
    (root / "runs" / "bad.run").write_text("q1 Q0\n")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        track.pack(tmp_path / "short.trecexam")
        track.pack(tmp_path / "whole.trecexam", texts=True)
    for name in ("short", "whole"):
        done = reproduce(tmp_path / f"{name}.trecexam", tmp_path / name)
        assert done.reproduced, outcomes(done)
        files = [row["file"] for row in tsv_rows(tmp_path / name / "out" / "rejected.tsv")]
        assert sorted(files) == ["passages.jsonl"] * 2 + ["runs/bad.run", "runs/gone.run"]


def test_texts_are_read_from_a_folder_if_their_digests_match(tmp_path: Path) -> None:
    pack = graded_by_hash(tmp_path / "track")
    collection = tmp_path / "collection"
    collection.mkdir()
    lines = (tmp_path / "track" / "passages.jsonl").read_text().splitlines()
    lines[0] = lines[0].replace("passage", "a mended passage")
    (collection / "corpus.jsonl").write_text("\n".join(lines))
    (collection / "other.bin").write_bytes(b"\0\1")
    done = reproduce(pack, tmp_path / "again", texts=collection)
    assert done.reproduced
    n = len(lines_of(pack, "texts.jsonl"))
    assert f"has {n - 1} of the {n} texts that are not packed" in done.notes[0]
    assert "rejected the texts of 1 passage" in done.notes[1]
    again = (tmp_path / "again" / "passages.jsonl").read_text()
    assert again.count("about q") == n - 1
    assert again.count("sha256:") == 1


def test_a_differing_value_is_reported_with_the_differing_versions(tmp_path: Path) -> None:
    pack = graded_by_hash(tmp_path / "track")
    board = tmp_path / "track" / "out" / "leaderboard.tsv"
    rows = tsv_rows(board)
    measure = list(rows[0])[1]
    board.write_text(board.read_text().replace(rows[1][measure], "0.123456", 1))
    manifest = board.with_name("manifest.json")
    versions = json.loads(manifest.read_text())
    versions["versions"]["numpy"] = "0.1"
    manifest.write_text(json.dumps(versions))
    (tmp_path / "track" / "out" / "extra.html").write_text("by somebody")
    with trecexam.open_track(tmp_path / "track", grader=HashGrader()) as track:
        track.pack(pack)
    done = reproduce(pack, tmp_path / "again")
    assert not done.reproduced
    ((name, (outcome, why)),) = outcomes(done).items()
    assert (name, outcome) == ("leaderboard.tsv", "differs")
    assert f"line 2, column {measure}: '0.123456' then, '{rows[1][measure]}' now" in why
    assert "numpy 0.1 then, " in why
    assert run(["reproduce", str(pack), "-o", str(tmp_path / "once more")]) == 1


def test_answers_are_parsed_without_their_server_and_parser_differences_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    root = make_small_track(tmp_path / "track", docs=4, items=2)
    with serving(Exchange.say) as server:
        settings = f'name = "openai"\nmodel = "tiny"\nbase_url = "{server.url}"\nkey_env = "TEST_KEY"\n'
        prompt = 'template = "{question} {context} Rate 0 to 5."\n'
        (root / "mine.toml").write_text(prompt)
        (root / "trecexam.toml").write_text(f'{QUIET}[grader]\n{settings}prompt = "mine.toml"\n')
        assert run(["watch", str(root), "--once"]) == 0
        n_asked = len(server.bodies)
    pack = tmp_path / "p.trecexam"
    assert run(["pack", str(root), "-o", str(pack)]) == 0
    assert KEY.encode() not in b"".join(parts_of(pack).values())
    monkeypatch.delenv("TEST_KEY")
    done = reproduce(pack, tmp_path / "again")
    assert done.reproduced, outcomes(done)
    assert len(server.bodies) == n_asked
    rows = lines_of(pack, "answers.jsonl")
    rows[0]["rating"] = (rows[0]["rating"] + 1) % 6
    other = forged(pack, tmp_path / "other.trecexam", {"answers.jsonl": jsonl(rows)})
    done = reproduce(other, tmp_path / "read")
    # The current parser counts; the recorded result is compared with it.
    assert done.reproduced
    assert f"1 of {len(rows)} answers of rubric are now read differently" in done.notes


def test_a_grader_that_waits_for_a_model_also_waits_in_the_pack(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    config = '[graders.rubric]\nname = "recorded"\nrecorded = "grades.jsonl"\n[graders.nuggets]\n'
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.grading.grade()
        (root / "grades.jsonl").write_bytes(jsonl(list(track.grades())))
    (root / "trecexam.toml").write_text(
        QUIET + config + 'bank = ["bank.nuggets.jsonl"]\nwrite_bank = "nuggetizer"\n'
    )
    switch_report_on(root)
    assert run(["watch", str(root), "--once"]) == 0
    assert run(["pack", str(root), "-o", str(tmp_path / "p.trecexam")]) == 0
    assert run(["reproduce", str(tmp_path / "p.trecexam"), "-o", str(tmp_path / "again")]) == 0
    assert lines_of(tmp_path / "p.trecexam", "assessments.jsonl")[1]["unable"]


def test_data_of_a_dataset_is_in_the_pack_and_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '[track]\ndepth = 8\ndataset = "of/others"\n[report]\nwrite = false\n'
    root = make_small_track(tmp_path / "track", config=config)
    rows = {name: list(converters.read(root / file, name)) for name, file in OF_DATASET.items()}
    for file in OF_DATASET.values():
        (root / file).unlink()
    with monkeypatch.context() as patched:
        passages = {each.doc_id: each for each in rows["passages"]}
        patched.setattr(inputs, "dataset_queries", lambda _: rows["queries"])
        patched.setattr(inputs, "dataset_qrels", lambda _: rows["qrels"])
        patched.setattr(texts, "dataset_passages", lambda _, ids: {each: passages[each] for each in ids})
        with trecexam.open_track(root, grader=HashGrader()) as track:
            track.update()
            track.pack(tmp_path / "p.trecexam")
    done = reproduce(tmp_path / "p.trecexam", tmp_path / "again")
    assert done.reproduced, outcomes(done)


def test_a_track_that_cannot_be_packed_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "track")
    assert run(["pack", str(root), "-o", str(tmp_path / "p.trecexam")]) == 2
    assert f"nothing is in out/ yet: `trecexam watch {root} --once` first" in capsys.readouterr().err
    shutil.move(root / "qrels.txt", tmp_path / "qrels.txt")
    (root / "trecexam.toml").write_text('[track]\nqrels = "../qrels.txt"\n')
    assert run(["pack", str(root), "-o", str(tmp_path / "p.trecexam")]) == 2
    said = capsys.readouterr().err
    assert "trecexam.toml:2: `qrels` in [track] names '../qrels.txt', which is not in the track" in said
    assert "link it into the track, and name the link" in said
    # A symlink is packed as its target file.
    (root / "qrels.txt").symlink_to(tmp_path / "qrels.txt")
    (root / "trecexam.toml").write_text(QUIET)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        track.pack(tmp_path / "p.trecexam")
    assert parts_of(tmp_path / "p.trecexam")["track/qrels.txt"] == (tmp_path / "qrels.txt").read_bytes()


@pytest.mark.slow
@pytest.mark.plots
def test_the_shipped_pack_is_of_the_demo_and_can_be_reproduced(tmp_path: Path) -> None:
    done = reproduce(SHIPPED, tmp_path / "demo")
    for name, outcome, why in done.files:
        # Other machines may have another matplotlib, which is then reported.
        assert outcome == "same" or " then, " in why, (name, why)
    pack_demo(tmp_path / "demo.trecexam")
    made, shipped = parts_of(tmp_path / "demo.trecexam"), parts_of(SHIPPED)
    assert made.keys() == shipped.keys()
    assert {name for name in made if made[name] != shipped[name]} <= {"manifest.json"}


@pytest.mark.slow
def test_dl19_without_texts_is_small_and_reproduced_in_a_minute(tmp_path: Path) -> None:
    data = outside("dl19")
    words = [f"--{each}" for each in ("queries", "bank", "passages", "qrels", "runs", "recorded")]
    names = ("queries.tsv", "bank.*", "passages.*", "qrels.txt", "runs", "graded.*")
    given = [str(next(data.glob(name))) for name in names]
    root, pack = str(tmp_path / "dl19"), tmp_path / "p.trecexam"
    assert run(["init", root, *(each for pair in zip(words, given, strict=True) for each in pair)]) == 0
    assert run(["watch", root, "--once"]) == 0
    assert run(["pack", root, "-o", str(pack)]) == 0
    assert pack.stat().st_size < 10 * 2**20
    text = json.loads((trecexam_lines(data))[0])["text"]
    assert text.encode() not in b"".join(parts_of(pack).values())
    begun = time.process_time()
    assert reproduce(pack, tmp_path / "again").reproduced
    assert time.process_time() - begun < 60


def trecexam_lines(data: Path) -> list[str]:
    """The lines of the passages of TREC DL 2019."""
    import gzip

    return gzip.decompress((data / "passages.jsonl.gz").read_bytes()).decode().splitlines()


def test_reproducing_a_file_that_is_not_a_pack_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.trecexam").write_bytes(b"no zip")
    for name, reason in (("x.trecexam", "is not a pack, or is damaged"), ("y.trecexam", "no such file")):
        with pytest.raises(TrecexamError, match=reason):
            reproduce(tmp_path / name, tmp_path / "again")
    assert not (tmp_path / "again").exists()
