"""The environment of a local model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from support import make_small_track

import trecexam
from trecexam.config import GraderSection
from trecexam.graders import Cell, create


@pytest.mark.parametrize(("name", "model"), [("seq2seq", "t5"), ("causal", "llama")])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_environment_is_available_once_the_model_has_graded(
    models: dict[str, Path], cells: list[Cell], name: str, model: str, dtype: str
) -> None:
    words = {"name": name, "model": str(models[model]), "device": "cpu", "dtype": dtype}
    grader = create(GraderSection.model_validate(words), models[model])
    assert grader.environment is None  # type: ignore[attr-defined]
    assert [len(batch) for batch in grader.grade(cells[:1])] == [1]
    made_on = grader.environment  # type: ignore[attr-defined]
    assert (made_on["device"], made_on["dtype"], made_on["torch"]) == ("cpu", dtype, torch.__version__)
    assert made_on["processor"]


def test_the_manifest_names_the_environment_and_loads_no_model_if_nothing_is_graded(
    models: dict[str, Path], tmp_path: Path
) -> None:
    root = make_small_track(tmp_path / "track", queries=1, docs=3, items=1)
    lines = f'[grader]\nname = "seq2seq"\nmodel = "{models["t5"]}"\ndevice = "cpu"\ndtype = "float32"\n'
    (root / "trecexam.toml").write_text(lines)
    with trecexam.open_track(root) as track:
        track.update()
    (made_on,) = json.loads((root / "out" / "manifest.json").read_bytes())["environments"]["graded_on"]
    assert (made_on["device"], made_on["dtype"]) == ("cpu", "float32")
    with trecexam.open_track(root) as track:
        assert not track.update().changed
