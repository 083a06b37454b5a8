"""The judge, run by TREC AutoJudge's own `auto-judge run` on a small data set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from autojudge_data import RUNS, TOPICS, auto_judge, lay_out_autojudge
from nltk_folder import with_nltk_data
from outside import outside
from rag_track import answer_as_a_judge
from scripted_server import Exchange, Scripted, serving

import trecexam
from trecexam.cli.main import run
from trecexam.errors import ConfigError, TrecexamError

with with_nltk_data():
    pytest.importorskip("autojudge_base")

COLUMNS = {
    "nuggets:all_score@20", "nuggets:strict_all_score@20", "nuggets:vital_score@20",
    "nuggets:strict_vital_score@20",
    "support:SupportF1", "support:SupportP", "support:SupportR",
}  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set in `data`, a judge in `judge`, answers in `cache`; no prompt is confirmed by a person."""
    lay_out_autojudge(tmp_path / "data")
    assert run(["autojudge", str(tmp_path / "judge")]) == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_MODEL", "some-model")
    monkeypatch.setenv("OPENAI_BASE_URL", "EMPTY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


def judge(out: str, variant: str, *more: str, status: int = 0) -> str:
    files = ("--rag-responses", "data/runs", "--rag-topics", "data/topics.jsonl", "--out-dir", out)
    return auto_judge(
        "run", "--workflow", "judge/workflow.yml", *files, "--variant", variant, *more, status=status
    )


def leaderboard(path: Path) -> dict[tuple[str, str, str], float]:
    """(run, topic, measure) -> value, of an ir_measures file."""
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {(run, topic, measure): float(value) for run, topic, measure, value in rows}


def contents(folder: Path) -> dict[str, bytes]:
    """The content of a folder, except for the file with the time of creation."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".config.yml"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def tracks(desk: Path) -> list[Path]:
    return list((desk / "cache" / "trecexam").iterdir())


def use(server: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)


@pytest.mark.slow
def test_all_graders_give_leaderboard_nuggets_and_qrels_and_a_rerun_sends_no_prompt(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer_as_a_judge) as server:
        use(server, monkeypatch)
        judge("out", "all")
        asked = len(server.bodies)
        assert asked
        assert max(server.seen.values()) == 1
        judge("again", "all")
        assert len(server.bodies) == asked
    # The server is down, and the address is another one.
    monkeypatch.setenv("OPENAI_BASE_URL", "EMPTY")
    judge("off", "all")
    assert contents(desk / "again") == contents(desk / "off") == contents(desk / "out")
    found = leaderboard(next((desk / "out").glob("all.eval*.txt")))
    measures = {measure for _, _, measure in found}
    assert measures >= COLUMNS
    assert {measure.partition(":")[0] for measure in measures} == {"nuggets", "support", "umbrela", "rubric"}
    (root,) = tracks(desk)
    with trecexam.open_track(root) as track:
        means = track.leaderboard(sorted(measures))
        for row in means.rows:
            for measure, score in zip(sorted(measures), row.scores, strict=True):
                answered = [found[row.run, topic, measure] for topic in RUNS[row.run]]
                # Unanswered queries count 0 on both sides.
                assert found[row.run, "all", measure] == pytest.approx(sum(answered) / len(TOPICS))
                assert found[row.run, "all", measure] == round(score.mean, 12)
        labels = {(row.query_id, row.doc_id): row.relevance for row in track["umbrela"].qrels()}
        # The official leaderboard, which the columns of all graders are compared with.
        (root / "official_leaderboard.txt").write_text((desk / "data" / "truth.txt").read_text())
        compared = track.correlate().to_pandas()
    with_truth = compared[compared.other_measure == "official_leaderboard:RELEVANCE"]
    assert {name.partition(":")[0] for name in with_truth.measure} == {
        "nuggets",
        "support",
        "umbrela",
        "rubric",
    }
    qrels = (line.split() for line in next((desk / "out").glob("*.qrels.txt")).read_text().splitlines())
    assert {(topic, doc): int(label) for topic, _, doc, label in qrels} == labels
    assert (desk / "out" / "all.nuggets.jsonl").exists()


@pytest.mark.slow
def test_a_variant_runs_only_its_graders_and_reuses_answers_of_other_variants(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer_as_a_judge) as server:
        use(server, monkeypatch)
        judge("out", "support")
        assert all("Statement: " in prompt or "capital of France" in prompt for prompt in server.seen)
        judge("out", "umbrela")
        asked = len(server.bodies)
        judge("out", "support")
        assert len(server.bodies) == asked
    found = leaderboard(next((desk / "out").glob("support.eval*.txt")))
    assert {measure for _, _, measure in found} == {
        "support:SupportF1",
        "support:SupportP",
        "support:SupportR",
    }
    assert not (desk / "out" / "support.qrels.txt").exists()
    assert len(tracks(desk)) == 1


@pytest.mark.slow
def test_a_killed_judge_resumes(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[subprocess.Popen[bytes]] = []

    def script(exchange: Exchange) -> None:
        if exchange.number == 12 and killed:
            killed[0].send_signal(signal.SIGKILL)
        answer_as_a_judge(exchange)

    with serving(script) as server:
        use(server, monkeypatch)
        code = "import sys; from autojudge_data import auto_judge; auto_judge(*sys.argv[1:])"
        line = ["run", "--workflow", "judge/workflow.yml", "--rag-responses", "data/runs", "--rag-topics",
                "data/topics.jsonl", "--out-dir", "out", "--variant", "all"]  # fmt: skip
        helpers = Path(__file__).resolve().parents[2] / "helpers"
        environment = {
            **os.environ,
            "PYTHONPATH": f"{helpers}{os.pathsep}{Path(trecexam.__file__).parents[1]}",
        }
        with subprocess.Popen([sys.executable, "-c", code, *line], env=environment) as child:
            killed.append(child)
        assert child.returncode == -signal.SIGKILL
        before = server.seen.copy()
        killed.clear()
        judge("out", "all")
        # Only prompts in flight at the kill are sent again.
        again = [prompt for prompt, times in server.seen.items() if times > 1]
        assert sum(before.values()) >= 12
        assert len(again) < sum(before.values())
        asked = len(server.bodies)
        judge("again", "all")
        assert len(server.bodies) == asked
    assert contents(desk / "again") == contents(desk / "out")


def test_without_permission_to_send_prompts_missing_grades_are_reported(desk: Path) -> None:
    with pytest.raises(
        TrecexamError, match=r"umbrela: no answer is stored for \d+ cells, and no model may be called"
    ):
        judge("out", "umbrela", status=1)
    with pytest.raises(
        TrecexamError, match="nuggets: its test bank is not written yet, and no model may be called"
    ):
        judge("out", "nuggets", status=1)


def test_an_unknown_setting_is_rejected_as_in_trecexam_toml(desk: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown setting `grader\.concurency`; did you mean `concurr"):
        judge("out", "umbrela", "--set", "grader.concurency=2", status=1)


def test_a_topic_id_with_a_blank_is_reported_before_any_prompt_is_sent(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (desk / "data").rglob("*.jsonl"):
        path.write_text(path.read_text().replace('"leaf"', '"a leaf"'))
    with serving(answer_as_a_judge) as server:
        use(server, monkeypatch)
        with pytest.raises(TrecexamError, match="topic ids with white space"):
            judge("out", "all", status=1)
        assert not server.bodies


@pytest.mark.slow
def test_given_nuggets_are_graded(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(answer_as_a_judge) as server:
        use(server, monkeypatch)
        judge("out", "nuggets")
        path = desk / "out" / "nuggets.nuggets.jsonl"
        given = path.read_text().replace("Bees collect nectar from flowers and", "Bees like it")
        assert given != path.read_text()
        (desk / "mine.jsonl").write_text(given)
        judge("mine", "nuggets", "--nugget-banks", "mine.jsonl", "--no-create-nuggets")
        assert any("Bees like it" in prompt for prompt in server.seen)


@pytest.mark.slow
def test_without_a_language_model_support_uses_embeddings(desk: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra `offline` is not installed")
    judge("out", "offline")
    found = leaderboard(next((desk / "out").glob("offline.eval*.txt")))
    assert found["run1", "all", "support:SupportF1"] > found["run2", "all", "support:SupportF1"]
    before = contents(desk / "out")
    judge("again", "offline")
    assert contents(desk / "again") == before


@pytest.mark.slow
def test_the_data_set_of_the_framework_is_judged_and_meta_evaluate_reads_the_result(
    desk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kiddie = outside("autojudge/kiddie")
    pytest.importorskip("sentence_transformers", reason="the extra `offline` is not installed")
    auto_judge(
        "run", "--workflow", "judge/workflow.yml", "--rag-responses", kiddie / "runs", "--rag-topics",
        kiddie / "topics" / "kiddie-topics.jsonl", "--out-dir", "out", "--variant", "offline",
    )  # fmt: skip
    found = leaderboard(next((desk / "out").glob("offline.eval*.txt")))
    means = {
        run: value
        for (run, topic, measure), value in found.items()
        if (topic, measure) == ("all", "support:SupportF1")
    }
    assert len(means) == 4
    assert all(0.32 <= value <= 0.41 for value in means.values())


# `trecexam autojudge DIR`: the folder to submit.


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
