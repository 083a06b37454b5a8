"""What a worker receives and creates; no cluster is needed."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from support import HashGrader, ask, make_small_track
from tiny_models import save_t5

import trecexam
from trecexam.cli.main import run
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.cluster.grader import (
    GraderRecipe,
    GraderWorker,
    UnansweredCell,
    WorkerAnswer,
    recipe_of,
)
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders import create
from trecexam.graders.base import UngradedError

PROMPT = 'template = "{context} Does it say: {nugget}?"\nmax_rating = 1\nanswers = { Yes = 1, No = 0 }\n'
#: Nothing listens there.
NOWHERE = RaySection(address="127.0.0.1:9")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track folder with a model and a custom prompt."""
    root = tmp_path_factory.mktemp("track")
    save_t5(root / "models" / "tiny-t5")
    (root / "mine.toml").write_text(PROMPT)
    return root


def settings(**more: Any) -> GraderSection:
    words = {"name": "seq2seq", "model": "models/tiny-t5", "device": "cpu", "prompt": "mine.toml", **more}
    return GraderSection.model_validate(words)


def sent(recipe: GraderRecipe) -> GraderRecipe:
    found: GraderRecipe = pickle.loads(pickle.dumps(recipe))
    return found


def test_on_a_cluster_a_grader_keeps_its_identity_and_what_it_says_of_itself(root: Path) -> None:
    here, there = create(settings(), root), create(settings(), root, NOWHERE)
    assert there.identity == here.identity
    for name in ("item_kinds", "needs_query_text", "scale", "score_settings", "free_text", "meter", "cut"):
        assert getattr(there, name) == getattr(here, name)
    assert there.read is not None


def test_a_worker_makes_the_same_grader_without_the_track_folder(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grader = create(settings(), root)
    monkeypatch.chdir(tmp_path)
    worker = sent(recipe_of(grader, settings(), root))()
    cells = [ask(f"passage {n} of yes", "yes or no", n, kind="nugget") for n in range(5)]
    here = {cell: answer for batch in grader.grade(cells) for cell, answer in batch}
    made_on = grader.environment
    assert made_on is not None
    assert worker.grade(cells) == [WorkerAnswer(here[cell], made_on) for cell in cells]
    assert not list(tmp_path.iterdir())


def test_a_worker_with_other_weights_does_not_grade(root: Path, tmp_path: Path) -> None:
    recipe = recipe_of(create(settings(), root), settings(), root)
    other = shutil.copytree(root / "models" / "tiny-t5", tmp_path / "tiny-t5")
    weights = load_file(other / "model.safetensors")
    save_file({name: 2 * weight for name, weight in weights.items()}, other / "model.safetensors")
    changed = recipe.settings.model_copy(update={"model": str(other)})
    with pytest.raises(GraderError, match=r"differs from this one in weights_sha256: give all machines"):
        GraderRecipe(changed, recipe.files, recipe.identity)()


def test_a_model_missing_on_the_worker_machine_is_reported(root: Path, tmp_path: Path) -> None:
    recipe = recipe_of(create(settings(), root), settings(), root)
    changed = recipe.settings.model_copy(update={"model": str(tmp_path / "gone")})
    with pytest.raises(GraderError, match="gone' is not a folder on this machine of the cluster"):
        GraderRecipe(changed, recipe.files, recipe.identity)()


def test_cells_that_a_worker_cannot_answer_now_are_left_for_later() -> None:
    class Half(HashGrader):
        def grade(self, cells: Any) -> Any:
            yield from super().grade(list(cells)[:3])
            raise UngradedError("that is all for now")

    cells = [ask("a passage", f"question {n}?", n) for n in range(5)]
    found = GraderWorker(Half()).grade(cells)
    assert all(isinstance(each, WorkerAnswer) and each.environment is None for each in found[:3])
    assert found[3:] == [UnansweredCell("that is all for now")] * 2


def test_a_graded_track_that_moves_to_a_cluster_grades_nothing_and_does_not_connect(
    tmp_path: Path,
) -> None:
    root = make_small_track(tmp_path / "track", docs=6, items=2)
    save_t5(root / "tiny-t5")
    config = '[track]\ndepth = 4\n[grader]\nname = "seq2seq"\nmodel = "tiny-t5"\ndevice = "cpu"\n'
    (root / "trecexam.toml").write_text(config)
    with trecexam.open_track(root) as track:
        assert track.update().graded > 0
    before = (root / "out" / "rubric.qrels").read_bytes()
    (root / "trecexam.toml").write_text(config + '[ray]\naddress = "127.0.0.1:9"\n')
    with trecexam.open_track(root) as track:
        update = track.update()
    assert (update.graded, update.complete) == (0, True)
    assert (root / "out" / "rubric.qrels").read_bytes() == before


@pytest.mark.parametrize("name", ["recorded", "openai"])
def test_graders_without_a_model_run_locally(tmp_path: Path, name: str) -> None:
    (tmp_path / "grades.jsonl").write_text("")
    words = {"name": name, "recorded": "grades.jsonl", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
    grader = create(GraderSection.model_validate(words), tmp_path, NOWHERE)
    assert type(grader) is type(create(GraderSection.model_validate(words), tmp_path))


def test_ray_is_listed_with_the_graders_but_is_not_a_grader(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graders", "--json"]) == 0
    rows = {row["grader"]: row for row in json.loads(capsys.readouterr().out)["graders"]}
    assert rows["ray"]["available"] == "yes"
    with pytest.raises(GraderError, match=r"`ray` is no grader.* `address` in \[ray\]"):
        create(GraderSection.model_validate({"name": "ray"}), Path())


def test_without_ray_the_message_says_how_to_install_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trecexam.extensions.cluster.pool.missing_for_cluster",
        lambda: "ray not installed: pip install '.[ray]'",
    )
    with pytest.raises(GraderError, match=r"pip install '\.\[ray\]'"):
        list(create(settings(), root, NOWHERE).grade([ask("p", "q?", kind="nugget")]))
