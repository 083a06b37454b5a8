from __future__ import annotations

import itertools
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
from trecexam.extensions.cluster.pool import FIRST, MOST_ALONE, Batch, Batches, Done
from trecexam.extensions.cluster.remote import answer_cells, make_grader, recipe_of
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders import create
from trecexam.graders.base import UngradedError

pytest.importorskip("torch")
pytest.importorskip("transformers")


@given(groups=st.lists(st.integers(1, 20), min_size=1, max_size=6), data=st.data(), workers=st.integers(1, 4))
def test_items_that_kill_workers_are_given_up_and_all_others_are_done_once(
    groups: list[int], data: st.DataObject, workers: int
) -> None:
    items = [(group, place) for group, size in enumerate(groups) for place in range(size)]
    deadly = data.draw(st.sets(st.sampled_from(items), max_size=4))
    batches = Batches([[(group, place) for place in range(size)] for group, size in enumerate(groups)], 10.0)
    sent: list[Batch] = []
    done: Counter[tuple[int, int]] = Counter()
    given_up: Counter[tuple[int, int]] = Counter()
    deaths = 0
    while True:
        while len(batches) < workers and (batch := batches.next()):
            sent.append(batch)
        if not len(batches):
            break
        batch = sent.pop(data.draw(st.integers(0, len(sent) - 1)))
        if deadly & set(pickle.loads(batch.items)):
            deaths += 1
            given_up.update(batches.finish(Done(batch.number, None, 0.0))[0])
        else:
            result = batches.finish(Done(batch.number, pickle.dumps("done"), 1.0))
            assert result[1] == "done"
            done.update(result[0])
    assert done == Counter(item for item in items if item not in deadly)
    assert given_up == Counter(deadly)
    # One for each halving (120 items: 7), plus the deaths that a single item may cause.
    assert deaths <= len(deadly) * (7 + MOST_ALONE)


@given(st.lists(st.lists(st.integers(), min_size=1, max_size=50), min_size=1))
def test_groups_are_never_split_and_batches_are_no_longer_than_needed(groups: list[list[int]]) -> None:
    batches = Batches(groups, 10.0)
    sent = [pickle.loads(batch.items) for batch in iter(batches.next, None)]
    assert [item for batch in sent for item in batch] == [item for group in groups for item in group]
    ends = set(itertools.accumulate(map(len, groups)))
    assert set(itertools.accumulate(map(len, sent))) <= ends
    assert all(FIRST <= len(batch) < FIRST + 50 for batch in sent[:-1])


def test_batches_grow_until_they_take_the_requested_seconds() -> None:
    batches = Batches(([0] for _ in range(3_416)), 10.0)
    seen = []
    while batch := batches.next():
        seen.append(len(pickle.loads(batch.items)))
        # The last full one is slow.
        seconds = seen[-1] / (100 if len(seen) < 5 else 10)
        batches.finish(Done(batch.number, pickle.dumps(None), seconds))
    assert seen == [64, 256, 1000, 1000, 1000, 96]


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
    worker = pickle.loads(pickle.dumps(recipe_of(grader, settings(), root)))()
    cells = [ask(f"passage {n} of yes", "yes or no", n, kind="nugget") for n in range(5)]
    here = {cell: answer for batch in grader.grade(cells) for cell, answer in batch}
    made_on = grader.environment
    assert made_on is not None
    assert worker(cells) == ([here[cell] for cell in cells], made_on, "")
    assert not list(tmp_path.iterdir())


def test_a_worker_with_other_weights_does_not_grade(root: Path, tmp_path: Path) -> None:
    identity = create(settings(), root).identity
    other = shutil.copytree(root / "models" / "tiny-t5", tmp_path / "tiny-t5")
    weights = load_file(other / "model.safetensors")
    save_file({name: 2 * weight for name, weight in weights.items()}, other / "model.safetensors")
    with pytest.raises(GraderError, match=r"differs from this one in weights_sha256: give all machines"):
        make_grader(settings(model=str(other)), {"mine.toml": PROMPT.encode()}, identity)


def test_cells_that_a_worker_cannot_answer_now_are_left_for_later() -> None:
    class Half(HashGrader):
        def grade(self, cells: Any) -> Any:
            yield from super().grade(list(cells)[:3])
            raise UngradedError("that is all for now")

    cells = [ask("a passage", f"question {n}?", n) for n in range(5)]
    found = answer_cells(Half(), cells)
    assert [answer is not None for answer in found[0]] == [True] * 3 + [False] * 2
    assert found[1:] == (None, "that is all for now")


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
