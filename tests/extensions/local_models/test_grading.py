"""Grading with tiny models that were saved to disk and loaded back."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exhaustive import made
from support import ask, make_small_track

import trecexam
from trecexam.config import GraderSection
from trecexam.extensions.local_models import grader as local_grader
from trecexam.extensions.local_models import loading
from trecexam.extensions.local_models.backend import ModelOutput
from trecexam.extensions.local_models.batching import OutOfMemoryError
from trecexam.extensions.local_models.grader import LanguageGrader
from trecexam.graders import Answer, Cell, create
from trecexam.graders.base import identity_digest

MODELS = [("seq2seq", "t5"), ("causal", "llama"), ("causal", "gpt2")]


def grades(grader: LanguageGrader, cells: Sequence[Cell]) -> dict[Cell, Answer]:
    found: dict[Cell, Answer] = {}
    for batch in grader.grade(cells):
        for cell, answer in batch:
            assert cell not in found
            found[cell] = answer
    return found


def same(one: dict[Cell, Answer], two: dict[Cell, Answer]) -> bool:
    """Equal ratings and answers; distributions to five places (sums in another order round differently)."""
    assert one.keys() == two.keys()
    return all(
        (answer.rating, answer.status, answer.raw) == (two[cell].rating, two[cell].status, two[cell].raw)
        and (answer.probabilities or ()) == pytest.approx(two[cell].probabilities or (), abs=1e-5)
        for cell, answer in one.items()
    )


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_grades_do_not_depend_on_batch_size_order_and_budget(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    def grader(budget: int | None) -> LanguageGrader:
        return made(models[model], name, max_batch_tokens=budget)

    # Six passages: enough prompts to fill a batch and leave one.
    cells = cells[:24]
    expected = grades(grader(None), cells)
    assert len({answer.raw for answer in expected.values()}) > 1
    for budget, seed in ((1, 0), (700, 1), (3_000, 2), (10**6, 3)):
        shuffled = random.Random(seed).sample(cells, len(cells))
        assert same(grades(grader(budget), shuffled), expected)


@pytest.mark.parametrize(("name", "model"), [("seq2seq", "t5"), ("causal", "llama")])
def test_beams_do_not_depend_on_batch_size_and_order(
    models: dict[str, Path], cells: list[Cell], name: str, model: str
) -> None:
    def grader(budget: int | None) -> LanguageGrader:
        return made(models[model], name, decode="beam", max_new_tokens=4, max_batch_tokens=budget)

    cells = cells[:8]
    expected = grades(grader(None), cells)
    assert len({answer.raw for answer in expected.values()}) > 1
    assert same(grades(grader(700), cells[::-1]), expected)


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_a_pool_is_graded_completely_and_stored(
    models: dict[str, Path], tmp_path: Path, name: str, model: str
) -> None:
    config = f'[track]\ndepth = 8\n[grader]\nname = "{name}"\nmodel = "{models[model]}"\n'
    root = make_small_track(tmp_path / "track", config=config)
    with trecexam.open_track(root) as track:
        update = track.update()
        assert update.graded == update.counts.ok == update.counts.cells > 0
        rows = list(track.grades())
    for row in rows:
        assert row["model"] == models[model].name
        assert row["prompt"] == "QuestionSelfRatedUnanswerablePromptWithChoices"
        assert row["answer"] == str(row["rating"])
        assert row["probabilities"].index(max(row["probabilities"])) == row["rating"]
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-5)
    with trecexam.open_track(root) as track:
        assert track.update().graded == 0
    (root / "out" / "manifest.json").unlink()
    with trecexam.open_track(root) as track:
        assert track.update().graded == 0


def test_running_out_of_memory_loses_no_grade(
    models: dict[str, Path], cells: list[Cell], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = cells[:40]
    expected = grades(made(models["t5"], "seq2seq"), cells)
    for late in (False, True):
        grader = made(models["t5"], "seq2seq", max_batch_tokens=4_000)
        score, tried = grader.backend.score, []
        # The model may be another test's, with its budgets.
        vars(grader.backend)["_budgets"].clear()

        def short(
            jobs: Any,
            answers: Any,
            max_tokens: int,
            score: Any = score,
            late: bool = late,
            tried: list[int] = tried,
        ) -> Callable[[], list[list[float]]]:
            tokens = len(jobs) * max(job.length for job in jobs)
            tried.append(tokens)
            if tokens <= 900:
                return score(jobs, answers, max_tokens)  # type: ignore[no-any-return]

            def fail() -> list[list[float]]:
                raise OutOfMemoryError("no memory")

            return fail if late else fail()  # type: ignore[return-value]

        with monkeypatch.context() as patch:
            patch.setattr(grader.backend, "score", short)
            assert same(grades(grader, cells), expected)
            assert max(tried) > 900 >= tried[-1]
            # The budget stays lowered, and the environment says so.
            del tried[:]
            assert same(grades(grader, cells), expected)
            assert max(tried) <= 1_000
        assert grader.environment is not None
        assert int(grader.environment["batch_tokens"]) <= 1_000


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "MPS backend out of memory (MPS allocated: 9.0 GB)",
        "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory",
    ],
)
def test_a_lack_of_memory_is_recognised_in_any_words(words: str) -> None:
    with pytest.raises(OutOfMemoryError, match=re.escape(words)), loading.out_of_memory():
        raise RuntimeError(words)
    with pytest.raises(RuntimeError, match="a mask of another shape"), loading.out_of_memory():
        raise RuntimeError("a mask of another shape")


def test_the_identity_has_exactly_the_settings_that_can_change_an_answer(
    models: dict[str, Path], tmp_path: Path
) -> None:
    def digest(model: str = "t5", **settings: Any) -> bytes:
        section = GraderSection(name="seq2seq", model=str(models[model]), **settings)
        return identity_digest(create(section, tmp_path).identity)

    base = digest()
    free = {"max_batch_tokens": 7, "dtype": "float32", "device": "cpu", "compat": "workbench", "beams": 3}
    for settings in ({name: value} for name, value in free.items()):
        assert digest(**settings) == base
    others = [
        digest("t5-relu"),
        digest(decode="beam"),
        digest(decode="beam", beams=3),
        digest(decode="beam", max_new_tokens=20),
        digest(max_length=300),
        digest(passage_first=True),
        digest(prompt="NuggetSelfRatedPrompt"),
        digest(prompt="Sun"),
    ]
    assert len({base, *others}) == 1 + len(others)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs count as ended: the tiny models never give an end token."""
    monkeypatch.setattr(local_grader, "ModelOutput", lambda text, cut: ModelOutput(text))


def test_an_answer_key_is_compared_with_what_the_model_wrote(models: dict[str, Path], ends: None) -> None:
    grader = made(
        models["t5"], "seq2seq", prompt="QuestionCompleteConcisePromptWithAnswerKey2", max_new_tokens=4
    )
    assert grader.decoding.mode == "beam"
    plain = ask("a passage", "what is it?", 1, key=["something else"])
    said = grades(grader, [plain])[plain].raw
    right = ask("a passage", "what is it?", 2, key=[said])
    keyless = ask("a passage", "what is it?", 3)
    found = grades(grader, [plain, right, keyless])
    assert found[plain].rating == 0
    assert (found[right].rating, found[right].status) == (int(len(said) > 1), "ok")
    assert found[keyless].status == "error"
    assert "has no answer key" in found[keyless].raw


def test_an_answer_is_verified_by_the_model_that_gave_it(models: dict[str, Path], ends: None) -> None:
    """The second prompt holds question, key and answer; equal answers to an item are sent once."""
    name = "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2"
    grader = made(models["t5"], "seq2seq", prompt=name, max_new_tokens=4)
    assert (grader.decoding.mode, grader.free_text) == ("beam", True)
    cells = [ask(f"passage {n % 2}", "what is it?", 1, doc_id=f"d{n}", key=["a thing"]) for n in range(4)]
    keyless = ask("a passage", "what is it?", 2)
    found = grades(grader, [*cells, keyless])
    assert found[keyless].status == "error"
    answering = made(models["t5"], "seq2seq", prompt="NuggetExtractionPrompt", max_new_tokens=4)
    verifying = made(models["t5"], "seq2seq", prompt="AnswerVerification", decode="beam", max_new_tokens=4)
    answering.prompts = {"question": replace(grader.prompts["question"], verification=None)}
    given = grades(answering, cells)
    asked: list[str] = []
    tokens = grader.backend.tokens
    encode = tokens.encode
    tokens.encode = lambda texts: asked.extend(texts) or encode(texts)  # type: ignore[method-assign]
    for cell in cells:
        words = given[cell].raw.strip()
        (verdict,) = grades(verifying, [cell._replace(text=words)]).values()
        assert json.loads(found[cell].raw) == {"answer": words, "verification": verdict.raw}
        assert found[cell].rating == verdict.rating
        assert grader.read(cell.item, found[cell].raw) == verdict.rating
    asked.clear()
    grades(grader, cells)
    verifications = [text for text in asked if text.startswith("For the question")]
    assert len(verifications) == len(set(verifications)) == len({answer.raw for answer in given.values()})


# The environment of a local model.


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
