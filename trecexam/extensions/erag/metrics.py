"""Metrics of an output, 0..1: the best value over the gold outputs."""

from __future__ import annotations

import importlib.util
import math
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

from trecexam.errors import GraderError
from trecexam.folder import metric_file
from trecexam.graders.replies import Unread

#: (output, gold outputs) -> 0..1.
Metric = Callable[[str, tuple[str, ...]], float]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORDS = re.compile(r"[^\W_]+")
#: Tolerance for scores outside 0..1 by rounding, as of cosines in single precision.
_ROUNDING = 1e-6


def normalised(text: str) -> str:
    """Return the text normalised as in SQuAD 1 and KILT: lower case, no punctuation, articles, extra blanks.

    Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016, section 6.1;
    Petroni et al., "KILT: a Benchmark for Knowledge Intensive Language Tasks", NAACL 2021.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(output: str, gold: Sequence[str]) -> float:
    """Return 1 if the output equals a gold output after normalisation, else 0; "" equals "the" as in KILT."""
    plain = normalised(output)
    return float(any(plain == normalised(each) for each in gold))


def accuracy(output: str, gold: Sequence[str]) -> float:
    """Return 1 if the output equals a gold output exactly, apart from outer blanks, else 0.

    This is KILT's metric, which eRAG's experiments use for labels such as SUPPORTS and REFUTES (Petroni
    et al., "KILT: a Benchmark for Knowledge Intensive Language Tasks", NAACL 2021).
    """
    return float(output.strip() in {each.strip() for each in gold})


def token_f1(output: str, gold: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of the output's words, both normalised.

    0 without a shared word, even if both are empty ("AN." and "the"), as in SQuAD 1 and KILT; SQuAD 2 gives
    1.
    """
    tokens = Counter(normalised(output).split())
    return max(_f(tokens, Counter(normalised(each).split())) for each in gold)


def _f(tokens: Counter[str], gold: Counter[str]) -> float:
    same = (tokens & gold).total()
    return 2 * same / (tokens.total() + gold.total()) if same else 0.0


def rouge_l(output: str, gold: Sequence[str]) -> float:
    """Return ROUGE-L: the harmonic mean of the longest common subsequence's shares of both texts.

    Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, section 3.1. Words are runs of
    letters and digits, in lower case and not stemmed, as in the package rouge-score, which drops all letters
    except a to z.
    """
    from rapidfuzz.distance import LCSseq

    tokens = _WORDS.findall(output.lower())
    best = 0.0
    for each in gold:
        gold_tokens = _WORDS.findall(each.lower())
        if tokens and gold_tokens:
            common = LCSseq.similarity(tokens, gold_tokens)
            best = max(best, 2 * common / (len(tokens) + len(gold_tokens)))
    return best


def contains_answer(text: str, gold: Sequence[str]) -> float:
    """Return 1 if a text contains a gold answer as consecutive words, normalised as for `em`, else 0."""
    words = f" {normalised(text)} "
    return float(any(answer and f" {answer} " in words for answer in map(normalised, gold)))


METRICS: dict[str, Metric] = {
    "em": exact_match,
    "f1": token_f1,
    "rouge-l": rouge_l,
    "accuracy": accuracy,
}


def metric_of(name: str, root: Path) -> Metric:
    """Return the metric of this name, or the callable that `module:function` names.

    Modules are searched in the track's folder, the working directory, then Python's path. A file of the track
    is read at each call, so that edits take effect.

    Raises:
        GraderError: the metric is missing, cannot be loaded or needs a package; the message says what to do.
    """
    if ":" not in name:
        if name not in METRICS:
            metric_names = ", ".join(METRICS)
            raise GraderError(f"no metric '{name}'; give {metric_names}, or your own as module:function")
        return METRICS[name]
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise GraderError(f"metric '{name}' is not written as module:function")
    try:
        with redirect_stdout(sys.stderr):
            target: Any = _module(module_name, root)
        for part in attribute.split("."):
            target = getattr(target, part)
    except (Exception, SystemExit) as error:
        # The user's code can raise any exception.
        raise GraderError(f"metric '{name}' cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(target):
        raise GraderError(f"metric '{name}' is not a function")
    metric: Metric = target
    return metric


def _module(name: str, root: Path) -> Any:
    path = metric_file(f"{name}:", root) or metric_file(f"{name}:", Path())
    if path is None:
        return import_module(name)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # So the module can import its neighbours, and its classes know their module.
    folder = str(path.parent.absolute())
    sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name)
        raise
    finally:
        sys.path.remove(folder)
    return module


def scored(metric: Metric, output: str, gold: tuple[str, ...]) -> float | Unread:
    """Return the metric's value, or the reason why it is no number in 0..1; redirect prints to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            value: Any = metric(output, gold)
    except (Exception, SystemExit) as error:
        # An exception in the user's function must not affect other outputs.
        return Unread(f"the metric raised {type(error).__name__}: {error}"[:200])
    try:
        # Numbers of numpy, torch and similar libraries have `item`.
        number = float(value if isinstance(value, Real) else value.item())
    except Exception:
        kind = type(value).__name__
        return Unread(f"the metric returned {kind} instead of a number from 0 to 1")
    if not -_ROUNDING <= number <= 1 + _ROUNDING:
        score_text = "NaN" if math.isnan(number) else f"{number:g}"
        return Unread(f"the metric returned {score_text}, not a number from 0 to 1")
    return min(max(number, 0.0), 1.0)
