"""A model on cluster workers generates the same text as locally."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")

from ray_cluster import cluster as started
from tiny_models import save_llama

from trecexam.config import GeneratorSection
from trecexam.config.track_config import config_class
from trecexam.extensions.cluster.settings import RaySection
from trecexam.extensions.cluster.writer import ClusterWriter
from trecexam.graders.writing.create import create_writer

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_the_texts_equal_those_of_a_local_run(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "llama")
    prompts = [f"what of number {number}" for number in range(8)]
    settings: dict[str, Any] = {
        "generator": GeneratorSection(name="causal", model=str(folder), device="cpu", max_new_tokens=8)
    }
    here = create_writer(config_class()(**settings), tmp_path)
    expected = dict(pair for batch in here.write(prompts) for pair in batch)
    with started(1) as made:
        there = create_writer(config_class()(**settings, ray=RaySection(address=made.address)), tmp_path)
        assert isinstance(there, ClusterWriter)
        assert there.identity == here.identity
        assert dict(pair for batch in there.write(prompts) for pair in batch) == expected
