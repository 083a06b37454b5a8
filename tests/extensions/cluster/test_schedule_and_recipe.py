from __future__ import annotations

import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from support import HashGrader, ask, make_small_track
from tiny_models import save_t5

import trecexam
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.cluster.grader import (
    GraderRecipe,
    GraderWorker,
    UnansweredCell,
    WorkerAnswer,
    recipe_of,
)
from trecexam.extensions.cluster.pool import _Sizes, packed
from trecexam.extensions.cluster.schedule import MOST_ALONE, Piece, Schedule
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders import create
from trecexam.graders.base import UngradedError

pytest.importorskip("torch")
pytest.importorskip("transformers")


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    data=st.data(),
    workers=st.integers(1, 4),
)
def test_items_that_kill_workers_are_given_up_and_all_others_are_done_once(
    sizes: list[int], data: st.DataObject, workers: int
) -> None:
    items = [(number, place) for number, size in enumerate(sizes) for place in range(size)]
    deadly = data.draw(st.sets(st.sampled_from(items), max_size=4))
    schedule: Schedule[int] = Schedule()
    for number, size in enumerate(sizes):
        schedule.add(Piece(number, range(size)))
    hands: dict[int, list[Piece]] = {worker: [] for worker in range(workers)}
    done: Counter[tuple[int, int]] = Counter()
    given_up: Counter[tuple[int, int]] = Counter()
    deaths = 0
    while len(schedule):
        for worker in list(hands):
            while piece := schedule.take(worker):
                hands[worker].append(piece)
        worker = data.draw(st.sampled_from([worker for worker in hands if hands[worker]]))
        piece = hands[worker].pop(0)
        if any((piece.number, place) in deadly for place in piece.places):
            deaths += 1
            lost = schedule.ended(worker, blame=True)
            if lost is not None:
                given_up.update((lost.number, place) for place in lost.places)
            hands[max(hands) + 1] = []
            del hands[worker]
        else:
            schedule.done(worker, piece)
            done.update((piece.number, place) for place in piece.places)
    assert done == Counter(item for item in items if item not in deadly)
    assert given_up == Counter(deadly)
    # Two for the whole, one for each halving (20 items: 5), plus the deaths that a single item may cause.
    assert deaths <= len(deadly) * (2 + 5 + MOST_ALONE)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=5)), st.integers(1, 12))
def test_groups_are_never_split_and_batches_are_no_longer_than_needed(
    groups: list[list[int]], size: int
) -> None:
    batches = list(packed(groups, lambda: size))
    assert [item for batch in batches for item in batch] == [item for group in groups for item in group]
    ends = set()
    count = 0
    for group in groups:
        count += len(group)
        ends.add(count)
    count = 0
    for batch in batches:
        count += len(batch)
        assert count in ends
    assert all(len(batch) >= size for batch in batches[:-1])
    assert all(len(batch) < size + 5 for batch in batches)


def test_batches_grow_until_they_take_the_requested_seconds() -> None:
    sizes = _Sizes(10.0)
    seen = []
    for _ in range(6):
        seen.append(sizes.items())
        sizes.learn(sizes.items(), sizes.items() / 100)
    assert seen == [64, 256, 1000, 1000, 1000, 1000]
    sizes.learn(3, 3.0)
    assert sizes.items() == 1000
    sizes.learn(1000, 100.0)
    assert sizes.items() == 100


# What a worker receives and creates; no cluster is needed.


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


def test_without_ray_the_message_says_how_to_install_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trecexam.extensions.cluster.pool.missing_for_cluster",
        lambda: "ray not installed: pip install '.[ray]'",
    )
    with pytest.raises(GraderError, match=r"pip install '\.\[ray\]'"):
        list(create(settings(), root, NOWHERE).grade([ask("p", "q?", kind="nugget")]))
