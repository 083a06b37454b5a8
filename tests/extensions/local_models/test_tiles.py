"""Tiles: the shape of a batch follows from the lengths of its prompts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.local_models.tiles import padded_length, plan_tiles, shared_length, tiles

LENGTHS = st.lists(st.integers(1, 600), max_size=60)


@given(LENGTHS, st.integers(1, 3_000))
def test_the_shape_of_a_tile_depends_only_on_the_length_of_its_prompts(
    lengths: list[int], tokens: int
) -> None:
    padded = [*map(padded_length, lengths)]
    assert all(own <= tile < own + 16 for own, tile in zip(lengths, padded, strict=True))
    cut = tiles(padded, lambda length: max(1, tokens // length))
    assert sorted(place for tile in cut for place in tile.places[: tile.n_prompts]) == [*range(len(lengths))]
    for tile in cut:
        assert len(tile.places) == max(1, tokens // tile.length)
        assert {padded[place] for place in tile.places} == {tile.length}


@given(LENGTHS, st.integers(1, 3_000), st.integers(1, 5_000))
def test_batches_are_whole_tiles_and_incomplete_tiles_wait(
    lengths: list[int], tokens: int, max_tokens: int
) -> None:
    padded = [*map(padded_length, lengths)]
    batches, left = plan_tiles(padded, lambda length: max(1, tokens // length), max_tokens)
    assert sorted([*left, *(place for batch in batches for place in batch)]) == [*range(len(lengths))]
    for batch in batches:
        size = sum(padded[place] for place in batch)
        assert size <= max_tokens or len(batch) == 1
        if max_tokens >= tokens:
            whole = {length: max(1, tokens // length) for length in map(padded.__getitem__, batch)}
            assert all(sum(padded[p] == length for p in batch) % rows == 0 for length, rows in whole.items())
    for length in {padded[place] for place in left}:
        assert sum(padded[place] == length for place in left) < max(1, tokens // length)


def test_the_shared_prefix_is_shorter_than_a_prompt_and_a_multiple_of_the_step() -> None:
    tokens = [*range(40)]
    assert shared_length(tokens, tokens) == 32
    assert shared_length(tokens[:33], tokens) == 32
    assert shared_length(tokens[:32], tokens) == 16
    assert shared_length(tokens, [*range(31), 99]) == 16
    assert shared_length(tokens, ()) == 0
