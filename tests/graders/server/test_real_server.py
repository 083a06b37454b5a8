"""A real server: `transformers serve` with a tiny model, offline."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trecexam.config import GeneratorSection, TrackConfig
from trecexam.graders.replies import WrittenText
from trecexam.graders.writing.create import create_writer

pytest.importorskip("accelerate")
pytest.importorskip("fastapi")
pytest.importorskip("torch")
pytest.importorskip("uvicorn")

from tiny_models import save_llama

from trecexam.config import GraderSection
from trecexam.graders import Cell, create
from trecexam.graders.server.grader import ServerGrader

pytestmark = pytest.mark.slow
Make = Callable[..., ServerGrader]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("model") / "tiny-llama")


@pytest.fixture(scope="module")
def url(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = ["serve", str(model), "--port", str(port), "--host", "127.0.0.1", "--device", "cpu"]
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "transformers.cli.transformers", *words, "--dtype", "float32"],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            stdout=file,
            stderr=file,
        )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


def answers_of(grader: object, cells: list[Cell]) -> dict[tuple[str, str], tuple[int | None, str, str]]:
    batches = grader.grade(cells)  # type: ignore[attr-defined]
    return {(c.doc_id, c.item.item_id): a[:3] for batch in batches for c, a in batch}


def test_a_server_answers_the_same_as_the_same_model_locally(
    make: Make, url: str, model: Path, cells: list[Cell]
) -> None:
    settings = GraderSection(
        name="causal",
        model=str(model),
        decode="beam",
        beams=1,
        max_new_tokens=6,
        device="cpu",
        dtype="float32",
    )
    # This server silently ignores restricted answers and the requested probabilities.
    grader = make(url, model=str(model), max_new_tokens=6, structured="json_schema", key_env=None)
    here, there = answers_of(create(settings, model), cells), answers_of(grader, cells)
    assert there == here
    assert len(there) == len(cells)
    plain = make(url, model=str(model), max_new_tokens=6, api="completions", key_env=None)
    assert answers_of(plain, cells).keys() == here.keys()


def test_a_server_generates_the_same_text_as_the_same_model_locally(url: str, model: Path) -> None:
    prompts = ["what is the cost of it", "who was that", "how do they fly"]
    words = {"model": str(model), "max_new_tokens": 8}

    def written(**settings: str) -> dict[str, str]:
        section = GeneratorSection.model_validate({**words, **settings})
        writer = create_writer(TrackConfig(generator=section), model.parent)
        found = {prompt: said for batch in writer.write(prompts) for prompt, said in batch}
        return {prompt: said.text for prompt, said in found.items() if isinstance(said, WrittenText)}

    there = written(name="openai", base_url=url)
    assert there == written(name="causal", device="cpu", dtype="float32")
    assert len(there) == len(prompts)
