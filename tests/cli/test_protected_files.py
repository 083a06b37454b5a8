"""No output replaces what a track is made of, what it stores, or an input of the command."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rag_track import make_demo_with_two_graders
from support import err
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a track, a response matrix, blocks, an exam and gold outputs."""
    folder = tmp_path_factory.mktemp("desk")
    make_demo_with_two_graders(folder / "t")
    assert run(["watch", str(folder / "t"), "--once"]) == 0
    with trecexam.open_track(folder / "t") as track:
        track["rubric"].override("q01", "heat-pump-01", 5, item=1, who="me", why="it does")
    rows = [[int((row + column) % 3 > 0) for column in range(5)] for row in range(6)]
    lines = ["\t".join(["examinee", *(f"i{n}" for n in range(5))])]
    lines += ["\t".join(map(str, [f"e{n}", *row])) for n, row in enumerate(rows)]
    (folder / "matrix.tsv").write_text("\n".join(lines) + "\n")
    groups = "".join(f"e{n}\t{'ab'[n % 2]}\n" for n in range(6))
    (folder / "components.tsv").write_text("examinee\tllm\n" + groups)
    put_rows(folder / "kept.jsonl", {"content": "a block"})
    put_rows(
        folder / "exam.jsonl",
        {
            "question_id": "x0", "question": "What is it that a pump moves?", "correct": 0,
            "choices": ["heat", "cold", "sand", "time"], "doc_id": "d", "documentation": "A pump.",
        },
    )  # fmt: skip
    put_rows(folder / "unlabelled.tsv", {"query_id": "q01", "doc_id": "heat-pump-01", "output": "heat"})
    (folder / "scores.tsv").write_text("bm25\tq01\t1\n")
    put_rows(folder / "gold.jsonl", {"query_id": "q01", "outputs": ["heat"]})
    return folder


@pytest.fixture
def unchanged(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder itself, in which no command of a test may change a file."""
    monkeypatch.chdir(desk)
    before = contents(desk)
    yield desk
    assert contents(desk) == before


@pytest.fixture
def inputs(desk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(desk, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def track(inputs: Path) -> Path:
    return inputs / "t"


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


FILES = (
    "trecexam.toml", "queries.tsv", "bank.questions.jsonl", "qrels.txt", "overrides.tsv", "runs/new.run",
    ".trecexam/grades.sqlite", "out/rubric.qrels",
)  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "leaderboard t -o {}", "compare t --pairs -o {}", "export pack t -o {}", "export qrels t -o {}",
        "fill t -o {}", "convert t/queries.tsv {} --to queries", "plot leaderboard t -o {}",
        "audit --qrels t/qrels.txt --runs t/runs -o {}",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchanged")
def test_an_output_that_is_a_file_of_a_track_is_rejected(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    # Converted runs go into the drop folder; IN and OUT differ.
    free = ("queries.tsv", "runs/new.run") if command.startswith("convert") else ()
    for target in (name for name in FILES if name not in free):
        lines = err(capsys, *command.format(f"t/{target}").split()).splitlines()
        (line,) = [line for line in lines if "name another file" in line or "give -o" in line]
        assert target in line


def test_a_link_to_an_input_and_an_input_that_is_a_link_are_not_replaced(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (track / "queries.tsv").rename("queries.tsv")
    (track / "queries.tsv").symlink_to(Path("queries.tsv").absolute())
    Path("link").symlink_to(track / "bank.questions.jsonl")
    for target in ("t/queries.tsv", "link"):
        shown = err(capsys, "leaderboard", "t", "-o", target)
        assert "is in a track, where no output replaces a file" in shown
    assert Path("link").is_symlink()
    assert (track / "queries.tsv").is_symlink()


def test_a_circle_of_links_is_replaced_like_another_link(track: Path) -> None:
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    assert run(["leaderboard", "t", "-o", "a"]) == 0
    assert Path("a").read_text().startswith("run\t")


def test_judgments_elsewhere_are_not_replaced(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = Path(shutil.copy(track / "qrels.txt", "people.qrels"))
    before = people.read_bytes()
    shown = err(capsys, "audit", "-o", "people.qrels", "--qrels", "people.qrels", "--runs", "t/runs")
    assert shown == "trecexam: people.qrels: is an input of this command; name another file\n"
    assert "exists, and `fill` did not write it" in err(capsys, "fill", "t", "-o", "people.qrels")
    # A track may read them.
    (track / "qrels.txt").unlink()
    (track / "qrels.txt").symlink_to(people.absolute())
    for command in ("export qrels", "fill"):
        assert run([*command.split(), "t", "-o", "people.qrels"]) == 2
    assert people.read_bytes() == before
    for _ in range(2):
        assert run(["fill", "t", "-o", "merged.qrels"]) == 0
    with trecexam.open_track(track) as opened, pytest.raises(TrecexamError, match="is the folder of a track"):
        opened.judging.export(track)


def test_outputs_in_the_folder_of_a_track_are_written_and_never_replaced(track: Path) -> None:
    for status in (0, 2):
        assert run(["leaderboard", "t", "-o", "t/mine.tsv"]) == status
        assert run(["convert", "t/runs/bm25.run", "t/runs/copy.run", "--to", "run"]) == status


FOLDER_COMMANDS = [
    "exam fit t -o {}", "exam fit matrix.tsv -o {}", "exam improve t -o {}", "exam improve matrix.tsv -o {}",
    "exam filter exam.jsonl -o {}", "exam score exam.jsonl --model nowhere -o {}",
    "erag t --gold gold.jsonl --labels contains-answer -o {}", "export runs t -o {}",
    "export leaderboard t --format trec_eval -o {}", "judge export t -o {}",
]  # fmt: skip


@pytest.mark.parametrize("command", FOLDER_COMMANDS)
@pytest.mark.usefixtures("unchanged")
def test_a_folder_of_a_track_is_no_output(capsys: pytest.CaptureFixture[str], command: str) -> None:
    for target in ("t", "t/runs", "t/runs/new", "t/out", "t/.trecexam", "t/.trecexam/new"):
        lines = err(capsys, *command.format(target).split()).splitlines()
        (line,) = [line for line in lines if "; name another " in line]
        assert line.startswith(f"trecexam: {target}: is ")


@pytest.mark.parametrize(
    ("command", "file", "reason"),
    [
        ("exam fit matrix.tsv -o .", "components.tsv", "was not written"),
        ("exam fit matrix.tsv --components components.tsv -o .", "components.tsv", "is an input"),
        ("exam fit t --components components.tsv -o .", "components.tsv", "is an input"),
        ("exam fit t -o .", "components.tsv", "was not written"),
        ("exam filter exam.jsonl -o .", "kept.jsonl", "was not written"),
        ("exam score exam.jsonl --model nowhere -o .", "matrix.tsv", "was not written"),
        ("erag t --gold gold.jsonl --outputs unlabelled.tsv -o .", "unlabelled.tsv", "is an input"),
        ("erag t --gold gold.jsonl --labels contains-answer --end-to-end scores.tsv -o .", "scores.tsv",
         "is an input"),
        ("erag t --gold gold.jsonl --labels contains-answer -o .", "scores.tsv", "was not written"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchanged")
def test_no_folder_output_replaces_or_removes_an_input_or_a_file_of_somebody_else(
    capsys: pytest.CaptureFixture[str], command: str, file: str, reason: str
) -> None:
    (line,) = err(capsys, *command.split()).splitlines()
    assert line.startswith(f"trecexam: {file}: {reason}")
    assert line.endswith("name another folder")


@pytest.mark.usefixtures("inputs")
def test_a_folder_output_is_replaced_and_may_be_in_a_track() -> None:
    for _ in range(2):
        assert run(["exam", "fit", "t", "-o", "t/out/exam"]) == 0
        assert run(["erag", "t", "--labels", "contains-answer", "--gold", "gold.jsonl", "-o", "t/erag"]) == 0
        assert run(["export", "runs", "t", "-o", "t/exported"]) == 0


def test_runs_that_a_track_links_to_are_not_replaced(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("linked").mkdir()
    (track / "runs" / "bm25.run").rename("linked/bm25.run")
    (track / "runs" / "bm25.run").symlink_to(Path("linked/bm25.run").absolute())
    before = Path("linked/bm25.run").read_bytes()
    shown = err(capsys, "export", "runs", "t", "-o", "linked")
    assert "linked/bm25.run: is an input of this command" in shown
    assert Path("linked/bm25.run").read_bytes() == before


def test_a_run_in_a_folder_that_a_command_reads_is_not_replaced(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(track / "runs", "ra")
    before = contents(Path("ra"))
    for _ in range(2):
        words = ["audit", "--qrels", "t/qrels.txt", "--runs", "ra"]
        assert "ra/bm25.run: is an input of this command" in err(capsys, *words, "-o", "ra/bm25.run")
        assert {
            name: content for name, content in contents(Path("ra")).items() if "html" not in name
        } == before
        # Its own page is no run.
        run([*words, "-o", "ra/audit.html"])
        assert Path("ra/audit.html").exists()
