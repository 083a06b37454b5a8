from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.cluster.pool import _Sizes, packed
from trecexam.extensions.cluster.schedule import MOST_ALONE, Piece, Schedule


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
