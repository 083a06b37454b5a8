"""The evaluator of examples/evaluator, installed next to trecexam: it is in --help, out/, report and page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support import ROOT, make_small_track

from trecexam.cli.main import commands
from trecexam.errors import TrecexamError
from trecexam.extension import extensions

PAGE = """
import sys
from pathlib import Path
from served import client_of

with client_of(Path(sys.argv[1])) as client:
    print(client.get("/").text)
    print(client.get("/section/overlap").text)
    assert client.get("/section/no-such").status_code == 404
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment with this checkout, its dependencies, and the evaluator."""
    folder = tmp_path_factory.mktemp("evaluator")
    source = folder / "source"
    shutil.copytree(ROOT / "examples" / "evaluator", source, ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(folder / "env", symlinks=True)
    import click

    (site,) = folder.glob("env/lib/python*/site-packages")
    (site / "beside.pth").write_text(f"{ROOT}\n{Path(click.__file__).parents[1]}\n")
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install"]
    called(*pip, "--no-deps", "--no-index", "--no-build-isolation", source)
    return python


def called(*words: str | Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "helpers")}
    done = subprocess.run(
        [str(word) for word in words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def overlaps(track: Path, first_ranks: int = 20) -> dict[str, float]:
    """Each run's mean over all items of the best rating among its first passages, from the files."""
    passages = map(json.loads, (track / "passages.jsonl").read_text().splitlines())
    texts = {row["docid"]: row["text"] for row in passages}
    bank = list(map(json.loads, (track / "bank.questions.jsonl").read_text().splitlines()))
    means = {}
    for file in sorted((track / "runs").iterdir()):
        best: list[int] = []
        lines = [line.split() for line in file.read_text().splitlines()]
        for query in bank:
            found = sorted((-float(line[4]), line[2]) for line in lines if line[0] == query["query_id"])
            first = [texts[doc_id] for _, doc_id in found[:first_ranks]]
            for question in (each["question_text"] for each in query["questions"]):
                shares = [len(words(question) & words(text)) / len(words(question)) for text in first]
                best.append(max((round(5 * share) for share in shares), default=0))
        means[lines[0][5]] = sum(best) / len(best)
    return means


@pytest.mark.slow
def test_an_installed_evaluator_is_in_help_outputs_report_and_page(installed: Path, tmp_path: Path) -> None:
    track = make_small_track(tmp_path / "track", config='[grader]\nname = "overlap"\n')
    program = (installed, "-m", "trecexam")
    assert re.search(r"\n  .*\boverlap\b", called(*program, "--help"))
    assert "overlap\tyes\tthe share of an item's words" in called(*program, "graders")
    called(*program, "watch", track, "--once")
    rows = [line.split("\t") for line in (track / "out" / "overlap.tsv").read_text().splitlines()]
    assert rows[0] == ["run", "overlap"]
    assert {run: float(value) for run, value in rows[1:]} == pytest.approx(overlaps(track))
    assert len(rows) == 4
    settings = called(*program, "config", track)
    assert "[overlap]\n# Passages of each run and query that count.\n# first = 20\n" in settings
    with (track / "trecexam.toml").open("a") as file:
        file.write("[overlap]\nfirst = 1\n")
    called(*program, "watch", track, "--once")
    lines = (track / "out" / "overlap.tsv").read_text().splitlines()[1:]
    assert dict(line.split("\t") for line in lines).keys() == overlaps(track).keys()
    assert [float(line.split("\t")[1]) for line in lines] == pytest.approx(
        sorted(overlaps(track, 1).values(), reverse=True)
    )
    manifest = json.loads((track / "out" / "manifest.json").read_text())
    assert "overlap.tsv" in manifest["outputs"]
    assert manifest["grader"] == {"grader": "overlap", "version": 1}
    report = (track / "out" / "report.html").read_text()
    assert "Words of the items</h2>" in report
    assert "Mean over queries and items of the best rating" in report
    said = json.loads(called(*program, "overlap", track, "--json"))
    assert {row["run"]: row["overlap"] for row in said["runs"]} == pytest.approx(overlaps(track, 1))
    page = called(installed, "-c", PAGE, track)
    assert '<a href="/section/overlap">Words of the items</a>' in page
    assert "<h1>Words of the items</h1>" in page
    assert all(run in page for run in overlaps(track))
    in_python = (
        "import sys, trecexam; from trecexam_overlap.feature import runs; "
        "print(len(runs(trecexam.open_track(sys.argv[1]))))"
    )
    assert called(installed, "-c", in_python, track) == "3\n"


def test_the_docs_page_shows_the_files_of_the_example() -> None:
    page = (ROOT / "examples" / "your-evaluator.md").read_text()
    shown = [block for _, block in re.findall(r"^```(py|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]
    folder = ROOT / "examples" / "evaluator"
    files = [folder / "pyproject.toml", *folder.glob("trecexam_overlap/*.py")]
    texts = {file.relative_to(folder).as_posix(): file.read_text() for file in files}
    assert {*shown} <= {*texts.values()}
    assert "class OverlapGrader" in "\n".join(shown)
    for name, text in texts.items():
        assert text in shown or f"(evaluator/{name})" in page


def test_without_the_evaluator_its_command_does_not_appear() -> None:
    assert "overlap" not in {name for extension in extensions() for name in extension.commands}


GOOD = 'from trecexam.extension import *\nEXTENSION = Extension("theirs", {})\n'


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import no_such_module\n", "the extension 'theirs' (theirs_one:EXTENSION) cannot be loaded: No mod"),
        ("EXTENSION = 3\n", "is not a trecexam.extension.Extension"),
        (GOOD.format('features=("theirs_one.FEATURE",)'), "names 'theirs_one.FEATURE': give \"module:name\""),
        (GOOD.format('graders={"erag": "a:B"}'), "'erag' and 'theirs' both have 'erag' in `graders`"),
        (GOOD.format('commands={"init": Command("a:b", "", "")}'), "has a command 'init', as trecexam has"),
    ],
)
def test_an_unusable_extension_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, why: str
) -> None:
    (tmp_path / "theirs_one.py").write_text(code)
    metadata = tmp_path / "theirs_one-1.dist-info"
    metadata.mkdir()
    points = "[console_scripts]\nx = y:z\n\n[trecexam.extensions]\ntheirs = theirs_one:EXTENSION\n"
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    extensions.cache_clear()
    try:
        with pytest.raises(TrecexamError) as error:
            commands()
    finally:
        extensions.cache_clear()
        sys.modules.pop("theirs_one", None)
    assert why in str(error.value)


def test_two_extensions_of_one_name_are_reported_with_the_package_to_uninstall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("one", "two"):
        metadata = tmp_path / f"the_{package}-1.dist-info"
        metadata.mkdir()
        (metadata / "entry_points.txt").write_text(f"[trecexam.extensions]\ntheirs = {package}:EXTENSION\n")
    monkeypatch.syspath_prepend(tmp_path)
    extensions.cache_clear()
    try:
        with pytest.raises(TrecexamError) as error:
            commands()
    finally:
        extensions.cache_clear()
    assert str(error.value).endswith("one:EXTENSION and two:EXTENSION; uninstall one: pip uninstall the_two")
