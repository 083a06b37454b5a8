"""`trecexam verify reproducible`: grades a sample again, alone and in batches."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cited import judging, make_cited_track
from scripted_server import KEY, Exchange, serving
from support import HashGrader, make_small_track

import trecexam
from trecexam.cli.main import run
from trecexam.errors import GraderError, TrecexamError
from trecexam.graders import Answer


class Sociable(HashGrader):
    """Gives other probabilities, and sometimes other answers, to cells in larger batches."""

    def grade(self, cells: Any) -> Any:
        for batch in super().grade(cells):
            alone = len(batch) == 1
            yield [(cell, self._changed(answer, alone=alone)) for cell, answer in batch]

    def _changed(self, answer: Answer, *, alone: bool) -> Answer:
        high = (answer.rating or 0) >= 3
        shares = (0.5, 0.5, 0.0, 0.0, 0.0, 0.0) if alone or not high else (0.5, 0.25, 0.25, 0.0, 0.0, 0.0)
        raw = f"{answer.raw}!" if alone and answer.rating == 5 else answer.raw
        return answer._replace(raw=raw, probabilities=shares)


def updated(tmp_path: Path, grader: HashGrader) -> Path:
    root = make_small_track(tmp_path / "track", queries=2, docs=6, items=3)
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
    return root


def content(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def test_a_grader_that_grades_each_cell_alone_gives_equal_grades_and_stores_nothing(tmp_path: Path) -> None:
    grader = HashGrader()
    root = updated(tmp_path, grader)
    before, asked = content(root), len(grader.asked)
    with trecexam.open_track(root, grader=grader) as track:
        counts = []
        done = track.verify.reproducible(sample=5, progress=counts.append)
    assert done.same
    assert (len(done.cells), done.graded, done.why) == (5, track.grading.counts().ok, "")
    assert [(row.comparison, row.cells, row.differing, row.share) for row in done.differences] == [
        (name, 5, 0, 0.0) for name in ("stored-alone", "stored-company", "alone-company")
    ]
    assert counts[-1][:2] == (10, 10)
    # Each alone, then each with three others.
    again = grader.asked[asked:]
    assert len(again) == 5 + 20
    assert again[:5] == [cell.cell for cell in done.cells]
    assert set(again[:5]) < set(again[5:])
    assert len(set(again[5:])) == 20
    assert content(root) == before
    assert done.notes[-1] == "5 of 36 graded cells checked: the same answers again, to the last bit"


def test_reported_differences_equal_a_recount(tmp_path: Path) -> None:
    grader = Sociable(batch=4)
    root = updated(tmp_path, grader)
    with trecexam.open_track(root, grader=grader) as track:
        done = track.verify.reproducible(sample=1_000)
        rows = {row.comparison: row for row in done.differences}
    assert not done.same
    assert len(done.cells) == done.graded
    fives = sum(cell.stored.rating == 5 for cell in done.cells)
    high = sum((cell.stored.rating or 0) >= 3 for cell in done.cells)
    assert 0 < fives < high < len(done.cells)
    of_alone = rows["stored-alone"]
    assert (of_alone.answers, of_alone.ratings, of_alone.probabilities) == (fives, 0, high)
    assert (of_alone.largest, of_alone.share) == (0.25, high / len(done.cells))
    assert rows["stored-company"].differing == 0
    assert rows["alone-company"][1:] == of_alone[1:]
    value = done.json_value()
    assert len(value["differing"]) == 3 * high
    assert value["comparisons"][0]["answers_differ"] == fives
    assert value["lacking"] == 0
    assert done.notes[-1].endswith(f" graded cells checked: {high} differ in something")
    assert json.loads(done.to_json()) == value
    assert list(done.to_pandas()["comparison"]) == list(rows)
    assert len(repr(done).splitlines()) <= 40
    assert "<table" in done._repr_html_()
    stored, alone, company = value["differing"][:3]
    assert [row["graded"] for row in (stored, alone, company)] == ["stored", "alone", "company"]
    assert stored["probabilities"] == company["probabilities"] != alone["probabilities"]


def test_the_sample_is_deterministic_and_a_larger_one_contains_it(tmp_path: Path) -> None:
    grader = HashGrader()
    root = updated(tmp_path, grader)
    with trecexam.open_track(root, grader=grader) as track:
        small, again, large = (
            [cell.cell for cell in track.verify.reproducible(sample=n).cells] for n in (4, 4, 9)
        )
    assert small == again == large[:4]


def test_a_stopped_check_says_so_and_does_not_report_equality(tmp_path: Path) -> None:
    grader = HashGrader()
    root = updated(tmp_path, grader)
    asked = len(grader.asked)
    with trecexam.open_track(root, grader=grader) as track:
        done = track.verify.reproducible(sample=8, stop=lambda: len(grader.asked) >= asked + 3)
    assert done.why == "stopped"
    assert not done.same
    assert [cell.alone is not None for cell in done.cells] == [True] * 3 + [False] * 5
    assert done.differences[0].cells == 3
    # Missing answers are counted, and not reported as different.
    assert (done.facts["lacking"], done.json_value()["differing"]) == (8, [])
    assert done.notes[-1] == "8 of 36 graded cells checked: no other answer; 8 were not answered both times"


def test_answers_received_before_a_grader_failed_are_compared(tmp_path: Path) -> None:
    root = updated(tmp_path, HashGrader())
    fails_after = 0

    class Failing(HashGrader):
        def grade(self, cells: Any) -> Any:
            if len(self.asked) >= fails_after:
                raise GraderError("the server answers HTTP 500")
            yield from super().grade(cells)

    with trecexam.open_track(root, grader=Failing()) as track:
        with pytest.raises(GraderError, match="HTTP 500"):
            track.verify.reproducible(sample=8)
        fails_after = 3
        done = track.verify.reproducible(sample=8)
    assert done.why == "the server answers HTTP 500"
    assert not done.same
    assert [difference.cells for difference in done.differences] == [3, 0, 0]


def test_recorded_grades_and_an_ungraded_track_have_nothing_to_verify(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "reproducible", str(graded)]) == 2
    assert "nothing to verify: the grades of `recorded`" in capsys.readouterr().err
    root = make_small_track(tmp_path / "new")
    with (
        trecexam.open_track(root, grader=HashGrader()) as track,
        pytest.raises(TrecexamError, match="nothing is graded yet"),
    ):
        track.verify.reproducible()


@pytest.fixture
def tiny(tmp_path: Path) -> Callable[[str], Path]:
    pytest.importorskip("transformers")
    from tiny_models import save_t5

    def made(dtype: str) -> Path:
        root = make_small_track(tmp_path / "track", queries=1, docs=4, items=2)
        lines = f'[grader]\nname = "seq2seq"\nmodel = "tiny"\ndevice = "cpu"\ndtype = "{dtype}"\n'
        save_t5(root / "tiny")
        (root / "trecexam.toml").write_text(lines)
        with trecexam.open_track(root) as track:
            track.update()
        return root

    return made


@pytest.mark.slow
def test_the_command_reports_the_same_as_the_python_call(
    tiny: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    root = tiny("float32")
    capsys.readouterr()
    status = run(["verify", "reproducible", str(root), "--sample", "3"])
    printed = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(printed.out), delimiter="\t"))
    assert [row["comparison"] for row in rows] == ["stored-alone", "stored-company", "alone-company"]
    assert [row["cells"] for row in rows] == ["3"] * 3
    assert status == any(row["share_differing"] != "0.000000" for row in rows)
    assert "3 of 8 graded cells checked: " in printed.err
    assert run(["verify", "reproducible", str(root), "--sample", "3", "--json"]) == status
    value = json.loads(capsys.readouterr().out)
    assert (value["sample"], value["graded"], value["complete"]) == (3, 8, True)
    # Stored on one device, graded again on another: this is reported.
    path = root / ".trecexam" / "grades.sqlite"
    from trecexam.line.store import GradeRow, GradeStore

    with GradeStore(path) as store:
        store.add(store.graders()[0][0], [GradeRow(99, 99, 1, "ok", "1")], {"device": "cuda"})
    run(["verify", "reproducible", str(root), "--sample", "1"])
    assert "made in another environment (device, dtype" in capsys.readouterr().err


def test_a_server_is_used_only_after_confirmation_and_its_answers_are_not_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2")
    monkeypatch.setenv("TEST_KEY", KEY)
    root = make_small_track(tmp_path / "track", queries=1, docs=4, items=2)
    with serving(Exchange.say) as server:
        (root / "trecexam.toml").write_text(
            f'[grader]\nname = "openai"\nmodel = "tiny"\nbase_url = "{server.url}"\nkey_env = "TEST_KEY"\n'
            "price_in = 1.0\nprice_out = 1.0\n"
        )
        assert run(["watch", str(root), "--once"]) == 0
        before, asked = content(root), len(server.bodies)
        capsys.readouterr()
        command = ["verify", "reproducible", str(root), "--sample", "3"]
        assert run(command) == 2
        error = capsys.readouterr().err
        assert "this asks a server about 6 prompts: some" in error
        assert "cost" in error
        assert "--yes" in error
        assert len(server.bodies) == asked
        assert run([*command, "--yes"]) == 0
        printed = capsys.readouterr()
        assert "a server gives no guarantee" in printed.err
        assert printed.out.splitlines()[1].split("\t")[:3] == ["stored-alone", "3", "0"]
        assert len(server.bodies) == asked + 6
    assert content(root) == before


def test_support_labels_are_graded_again_by_the_grader_of_support(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("httpx2")
    changed = False

    def sometimes(exchange: Exchange) -> None:
        if changed and "Pumps cost time." in exchange.prompt:
            exchange.say("no_support")
        else:
            judging(exchange)

    with serving(sometimes) as server:
        root = make_cited_track(tmp_path / "track", server.url)
        command = ["verify", "reproducible", str(root)]
        assert run(command) == 2
        assert f"nothing is graded yet: run `trecexam watch {root} --once`" in capsys.readouterr().err
        assert run(["watch", str(root), "--once"]) == 0
        before, asked = content(root), len(server.bodies)
        capsys.readouterr()
        assert run(command) == 2
        assert "this asks a server about 8 prompts: some" in capsys.readouterr().err
        assert run([*command, "--yes"]) == 0
        printed = capsys.readouterr()
        assert "a server gives no guarantee" in printed.err
        assert "4 of 4 graded citations checked: the same answers again" in printed.err
        assert len(server.bodies) == asked + 8
        changed = True
        assert run([*command, "--yes", "--json"]) == 1
        differing = json.loads(capsys.readouterr().out)["differing"]
        assert {(row["query_id"], row["doc_id"]) for row in differing} == {("q1", "q1-cost")}
        assert [row["rating"] for row in differing] == [1, 0, 0]
    assert content(root) == before


def test_recorded_labels_have_nothing_to_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cited = make_cited_track(tmp_path / "cited", name="recorded", recorded="labels.tsv")
    header = "run\tquery_id\tsentence\tdoc_id\tlabel\n"
    (cited / "labels.tsv").write_text(f"{header}good\tq1\t1\tq1-heat\tfull_support\n")
    assert run(["verify", "reproducible", str(cited)]) == 2
    assert "the grades of `recorded` are read from a file" in capsys.readouterr().err


def test_labels_of_an_embedder_are_the_same_alone_and_in_batches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers")
    from trecexam.graders.weights import offline_folder

    if offline_folder() is None:
        pytest.skip("the extra `offline` is not installed")
    root = make_cited_track(tmp_path / "track")
    (root / "trecexam.toml").write_text('[graders.support]\nname = "embedding"\ndevice = "cpu"\n')
    assert run(["watch", str(root), "--once"]) == 0
    capsys.readouterr()
    assert run(["verify", "reproducible", str(root), "--sample", "3"]) == 0
    assert "3 of 4 graded citations checked: the same answers again" in capsys.readouterr().err
