"""`trecexam autojudge DIR`: the folder to submit."""

from __future__ import annotations

from pathlib import Path

import pytest
from nltk_folder import with_nltk_data

from trecexam.cli.main import run


def test_the_folder_has_a_workflow_that_the_framework_reads(tmp_path: Path) -> None:
    with with_nltk_data():
        workflow = pytest.importorskip("autojudge_base.workflow")
        folder = tmp_path / "myjudge"
        assert run(["autojudge", str(folder)]) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["Dockerfile", "README.md", "workflow.yml"]
        read = workflow.load_workflow(folder / "workflow.yml")
        components = workflow.load_judge_from_workflow(read)
    assert set(read.variants) == {"rubric", "nuggets", "umbrela", "support", "all", "offline"}
    assert components.leaderboard_judge is components.nugget_creator is components.qrels_creator
    for name, variant in read.variants.items():
        chosen = (
            set(read.settings["graders"]) if name == "all" else {"support" if name == "offline" else name}
        )
        assert set(variant["graders"]) == chosen


def test_making_the_folder_twice_changes_nothing_and_never_replaces_other_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "myjudge"
    assert run(["autojudge", str(folder)]) == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run(["autojudge", str(folder)]) == 0
    assert "nothing to do" in capsys.readouterr().err
    (folder / "Dockerfile").unlink()
    (folder / "workflow.yml").write_text("mine")
    assert run(["autojudge", str(folder)]) == 2
    assert "another file with this name exists" in capsys.readouterr().err
    assert not (folder / "Dockerfile").exists()
    assert (folder / "workflow.yml").read_text() == "mine"
    assert (folder / "README.md").read_bytes() == before[folder / "README.md"]
