"""Metrics of an output, 0..1: the best value over the gold outputs."""

from __future__ import annotations

import importlib
import pkgutil
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from trecexam.errors import GraderError
from trecexam.folder import TrackFolder, metric_file, refuse_code

#: (output, gold outputs) -> 0..1.
Metric = Callable[[str, tuple[str, ...]], float]


class NoLabel(NamedTuple):
    """Why a ranked document has no label, so that it counts as 0.

    `status` is "missing" without a text or an output in the file; "unanswered" before the model is called;
    "refused" or "error" if the model gave no output; "unparsed" if the metric gave no score.
    """

    status: str
    reason: str


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
    words = Counter(normalised(output).split())
    golds = [Counter(normalised(each).split()) for each in gold]
    return max(_f_measure((words & each).total(), words.total(), each.total()) for each in golds)


def rouge_l(output: str, gold: Sequence[str]) -> float:
    """Return ROUGE-L: the harmonic mean of the longest common subsequence's shares of both texts.

    Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, section 3.1. Words are runs of
    letters and digits, in lower case and not stemmed, as in the package rouge-score, which drops all letters
    except a to z.
    """
    from rapidfuzz.distance import LCSseq

    words = _WORDS.findall(output.lower())
    golds = [_WORDS.findall(each.lower()) for each in gold]
    return max(_f_measure(LCSseq.similarity(words, each), len(words), len(each)) for each in golds)


def _f_measure(n_common: int, n_output: int, n_gold: int) -> float:
    return 2 * n_common / (n_output + n_gold) if n_common else 0.0


def contains_answer(text: str, gold: Sequence[str]) -> float:
    """Return 1 if a text contains a gold answer as consecutive words, normalised as for `em`, else 0."""
    words = f" {normalised(text)} "
    return float(any(answer and f" {answer} " in words for answer in map(normalised, gold)))


#: The default metric.
DEFAULT = "em"
METRICS: dict[str, Metric] = {
    "em": exact_match,
    "f1": token_f1,
    "rouge-l": rouge_l,
    "accuracy": accuracy,
}


def load_metric(folder: TrackFolder, metric: str | Metric | None) -> tuple[str, Metric]:
    """Return the name and function of a metric (None: the track's); code must be trusted."""
    if callable(metric):
        return str(getattr(metric, "__qualname__", type(metric).__name__)), metric
    name = folder.config.grader.metric if metric is None else metric
    refuse_code(name, folder.root, trusted=folder.trust_code)
    return name or DEFAULT, metric_of(name, folder.root)


def metric_of(name: str | None, root: Path) -> Metric:
    """Return the metric of this name (None: the default), or the callable that `module:function` names.

    Modules are searched in the track's folder, the working directory, then Python's path. A file of the track
    is read at each call, so that edits take effect.

    Raises:
        GraderError: the metric is missing, cannot be loaded or needs a package; the message says what to do.
    """
    name = DEFAULT if name is None else name
    if ":" not in name:
        if name not in METRICS:
            metric_names = ", ".join(METRICS)
            raise GraderError(f"no metric '{name}'; give {metric_names}, or your own as module:function")
        return METRICS[name]
    folders = [str(root.absolute()), str(Path.cwd())]
    if metric_file(name, root) or metric_file(name, Path()):
        sys.modules.pop(name.partition(":")[0], None)
    sys.path[:0] = folders
    try:
        importlib.invalidate_caches()
        with redirect_stdout(sys.stderr):
            metric: Metric = pkgutil.resolve_name(name)
    except (Exception, SystemExit) as error:
        # The user's code can raise any exception.
        reason = f"cannot be loaded as module:function: {type(error).__name__}: {error}"
        raise GraderError(f"metric '{name}' {reason}") from error
    finally:
        for folder in folders:
            sys.path.remove(folder)
    if not callable(metric):
        raise GraderError(f"metric '{name}' is not a function")
    return metric


def scored(metric: Metric, output: str, gold: tuple[str, ...]) -> float | NoLabel:
    """Return the metric's value, or the reason why it is no number in 0..1; redirect prints to stderr."""
    try:
        with redirect_stdout(sys.stderr):
            value: Any = metric(output, gold)
    except (Exception, SystemExit) as error:
        # An exception in the user's function must not affect other outputs.
        return NoLabel("unparsed", f"the metric raised {type(error).__name__}: {error}"[:200])
    try:
        # Numbers of numpy, torch and similar libraries have `item`.
        number = float(value if isinstance(value, Real) else value.item())
    except Exception:
        reason = f"the metric returned {type(value).__name__} instead of a number from 0 to 1"
        return NoLabel("unparsed", reason)
    if not -_ROUNDING <= number <= 1 + _ROUNDING:
        return NoLabel("unparsed", f"the metric returned {number:g}, not a number from 0 to 1")
    return min(max(number, 0.0), 1.0)
