"""`trecexam demo`: the track that comes with the package."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from support import ROOT, Terminal, err

import trecexam
from trecexam.cli.main import run
from trecexam.demo import DATA, RAG_CONFIG, RAG_FILES

README = ROOT / "README.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "mydemo"
    assert run(["demo", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def made_with_four_graders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rag") / "rag-demo"
    trecexam.make_demo_track(folder, rag=True)
    assert run(["watch", str(folder), "--once"]) == 0
    return folder


@pytest.fixture
def rag_demo(made_with_four_graders: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_with_four_graders, tmp_path / "rag-demo"))


@pytest.fixture
def demo(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "mydemo"))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".trecexam" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def packaged() -> dict[str, bytes]:
    return {name: content for name, content in contents(DATA).items() if name not in {RAG_CONFIG, *RAG_FILES}}


@pytest.mark.slow
def test_each_recipe_of_the_readme_prints_what_it_shows(
    demo: Path,
    rag_demo: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    on_terminal: Terminal,
) -> None:
    monkeypatch.chdir(demo.parent)
    assert rag_demo.parent == demo.parent
    demo.rename("trecexam-demo")
    recipes = re.findall(r"```sh\n(trecexam [^`]*)```\n\n```text\n(.*?)\n```", README.read_text(), re.DOTALL)
    assert len(recipes) == 3
    for commands, table in recipes:
        printed = []
        for command in commands.splitlines():
            with on_terminal():
                assert run(shlex.split(command, comments=True)[1:]) == 0
            printed.append([row.rstrip() for row in capsys.readouterr().out.splitlines()])
        assert table.splitlines() in printed


def test_the_rag_demo_has_the_four_graders_of_a_rag_track_and_needs_no_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr("socket.socket.connect", no_network)
    demo = tmp_path / "d"
    assert run(["demo", "--rag", str(demo)]) == 0
    printed = capsys.readouterr()
    header, *lines = printed.out.splitlines()
    rows = {
        line.split("\t")[0]: dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines
    }
    columns = ("nuggets:all_score@10", "nuggets:vital_score@10", "support:SupportF1")
    columns += ("umbrela:nDCG@10", "rubric:Cover(rel=4)@10")
    assert [name for name in header.split("\t") if not name.endswith(".stderr")][2:7] == [*columns]
    assert all(rows["rag-demo"][name] for name in columns)
    assert [bool(rows["dense"][name]) for name in columns] == [False] * 3 + [True] * 2

    recorded = (demo / "support.tsv").read_text()
    assert (demo / "out" / "support" / "support.tsv").read_text() == recorded
    weights = {"full_support": 1, "partial_support": 0.5, "no_support": 0}
    of_query: dict[str, list[float]] = {}
    for _, query_id, _, _, label in (line.split("\t") for line in recorded.splitlines()[1:]):
        of_query.setdefault(query_id, []).append(weights[label])
    mean = sum(sum(each) / len(each) for each in of_query.values()) / len(of_query)
    assert float(rows["rag-demo"]["support:SupportP"]) == pytest.approx(mean, abs=1e-6)
    assert 'href="rubric/report.html"' in (demo / "out" / "report.html").read_text()


def test_a_second_demo_prints_the_same_and_changes_no_file(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(demo)
    assert run(["demo", str(demo)]) == 0
    printed = capsys.readouterr()
    assert contents(demo) == before
    assert printed.out.startswith("run\tqueries\tCover(rel=4)@10\t")
    assert "dense-rerank\t8\t0.541667\t" in printed.out
    assert f"report: {demo / 'out' / 'report.html'}\n" in printed.err
    assert "<title>trecexam demo: evaluation report</title>" in (demo / "out" / "report.html").read_text()
    assert f"trecexam correlate {demo} " in printed.err
    # Edited files are kept and missing files are restored.
    (demo / "qrels.txt").write_text("q01 0 heat-pump-01 1\n")
    (demo / "runs" / "dense.run").unlink()
    assert [path.name for path in trecexam.make_demo_track(demo)] == ["dense.run"]
    assert (demo / "qrels.txt").read_text() == "q01 0 heat-pump-01 1\n"


@pytest.mark.parametrize("name", ["trecexam.toml", "passages.jsonl"])
def test_an_interrupted_copy_leaves_no_partial_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = Path.replace

    def break_off(self: Path, target: Path) -> Path:
        if target.name == name:
            raise KeyboardInterrupt
        return replaced(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", break_off)
        with pytest.raises(KeyboardInterrupt):
            trecexam.make_demo_track(tmp_path / "demo")
    assert not (tmp_path / "demo" / name).exists()
    trecexam.make_demo_track(tmp_path / "demo")
    assert contents(tmp_path / "demo") == packaged()


def test_a_folder_with_other_content_is_rejected_and_left_unchanged(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "thesis.tex").write_text("chapter 1")
    for folder, words in ((thesis, ["demo"]), (demo, ["demo", "--rag"])):
        before = contents(folder)
        assert err(capsys, *words, folder) == (
            f"trecexam: {folder}: is not empty and is no track of `trecexam {' '.join(words)}`; "
            "give another folder\n"
        )
        assert contents(folder) == before
    shown = err(capsys, "demo", thesis / "thesis.tex" / "demo")
    assert shown == f"trecexam: {thesis}/thesis.tex/demo: cannot be written: Not a directory\n"


def test_grading_the_demo_locally_puts_the_embedder_into_the_settings(tmp_path: Path) -> None:
    trecexam.make_demo_track(tmp_path, grade=True)
    with trecexam.open_track(tmp_path) as track:
        assert (track.folder.config.grader.name, track.folder.config.grader.recorded) == ("embedding", None)
    assert trecexam.make_demo_track(tmp_path, grade=True) == []
    settings = tmp_path / "trecexam.toml"
    settings.write_text(settings.read_text().replace('"embedding"', '"seq2seq"'))
    with pytest.raises(trecexam.TrecexamError, match=r"trecexam\.toml: names a grader of your own"):
        trecexam.make_demo_track(tmp_path, grade=True)
