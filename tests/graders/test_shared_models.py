"""Two graders of one track with the same local model load it once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import make_small_track
from tiny_models import save_t5

import trecexam
from trecexam.extensions.local_models import loading

SECTIONS = (
    '[graders.rubric]\n[graders.direct]\nprompt = "Sun"\n[graders.other]\nprompt = "FagB"\ndevice = "cpu"\n'
)


def test_two_prompts_of_one_model_load_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save_t5(tmp_path / "model")
    root = make_small_track(
        tmp_path / "track",
        config=f'[track]\ndepth = 2\n[report]\nwrite = false\n[grader]\nname = "seq2seq"\nmodel = "{model}"\n'
        f"{SECTIONS}",
        queries=1,
        items=1,
    )
    loaded: list[Any] = []
    load = loading.load_model

    def counted(*args: Any) -> Any:
        loaded.append(args)
        return load(*args)

    monkeypatch.setattr(loading, "load_model", counted)
    with trecexam.open_track(root) as track:
        done = track.update()
        assert done.complete, done.why
        assert all(each.graded for each in done.graders.values())
        # The third one is on another device, by its settings.
        assert len(loaded) == 2
        assert track["rubric"].grading.counts().ok + track["rubric"].grading.counts().unparsed > 0
