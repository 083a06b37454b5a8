"""Graders and writers whose models run on a cluster. Grades and their key in the store do not change."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.extensions.cluster import missing_for_cluster
from trecexam.extensions.cluster.pool import MOST_ALONE, Lost, run
from trecexam.extensions.cluster.settings import RaySection
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders import available
from trecexam.graders.base import Answer, Cell, Grader, UngradedError
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.base import LocalModelSettings, Writer, naming

#: Answers of a worker to cells (None if missing), their environment, and the reason for answers that may come
#: later, or "".
WorkerAnswers = tuple[list[Answer | None], Mapping[str, str] | None, str]
#: Work functions: grade a batch of cells, or write a text for each prompt of a batch.
Grade = Callable[[Sequence[Cell]], WorkerAnswers]
Write = Callable[[Sequence[str]], list[WrittenText | Unwritten]]


def answer_cells(grader: Grader, cells: Sequence[Cell]) -> WorkerAnswers:
    """Return the answers of a worker's grader to these cells."""
    answers: dict[Cell, Answer] = {}
    unanswered = ""
    try:
        for batch in grader.grade(cells):
            answers.update(batch)
    except UngradedError as error:
        unanswered = str(error)
    return [answers.get(cell) for cell in cells], grader.environment, unanswered


def _check_folder(model: Path) -> None:
    if model.is_absolute() and not model.is_dir():
        raise GraderError(
            f"'{model}' is not a folder on this machine of the cluster: put the model there, or give `model` "
            "a hub id"
        )


def _check_identity(what: str, actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Refuse a worker whose identity differs from the daemon's grader or writer."""
    different = sorted(key for key in actual.keys() | expected if actual.get(key) != expected.get(key))
    if different:
        raise GraderError(
            f"the {what} on that machine differs from this one in {', '.join(different)}: give all machines "
            "of the cluster the same model files and the same trecexam"
        )


def make_grader(settings: GraderSection, files: Mapping[str, bytes], identity: Mapping[str, Any]) -> Grade:
    """Create a grader in a worker, load its model, grade once as a test, and return the grading function.

    Args:
        files: name -> content of the track's files named in the settings.
        identity: identity of the daemon's grader.

    Raises:
        GraderError: the grader cannot be created here, or differs from the daemon's.
    """
    _check_folder(Path(settings.model or ""))
    with tempfile.TemporaryDirectory(prefix="trecexam-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        grader = available()[settings.name].create(settings, Path(folder))
        _check_identity("grader", grader.identity, identity)
    # No cell is the cause of a worker's end here.
    item = Item("q", "q/1", "What is the capital of France?", min(grader.item_kinds), ("Paris",))
    for _ in grader.grade([Cell("q", "capital of France", "d", "Paris is the capital of France.", item)]):
        pass
    return partial(answer_cells, grader)


def make_writer(settings: LocalModelSettings, identity: Mapping[str, Any]) -> Write:
    """Create a writer in a worker, load its model, write once as a test, and return the writing function.

    Raises:
        GraderError: the writer cannot be created here, or differs from the daemon's.
    """
    _check_folder(settings.folder)
    writer = provided("models").writer(settings, None, "grader")
    _check_identity("writer", writer.identity, identity)
    complete: Write = writer.complete
    complete(["What is the capital of France?"])
    return complete


def recipe_of(grader: Grader, settings: GraderSection, root: Path) -> Callable[[], Grade]:
    """Return the call of `make_grader` that creates this grader on any machine.

    A model folder of the track must have the same absolute path on every machine. The prompt file is sent
    with the settings.
    """
    # The metric runs here, where the user's function is available.
    changed: dict[str, Any] = {"metric": None}
    files: dict[str, bytes] = {}
    if settings.model is not None:
        folders = (root / settings.model, Path(settings.model))
        changed["model"] = next((str(path.absolute()) for path in folders if path.is_dir()), settings.model)
    if settings.prompt is not None and Path(settings.prompt).suffix.lower() in PROMPT_SUFFIXES:
        path = root / settings.prompt
        changed["prompt"] = path.name
        files[path.name] = path.read_bytes()
    return partial(make_grader, settings.model_copy(update=changed), files, dict(grader.identity))


class ClusterGrader(Grader):
    """A grader that grades on the workers of a cluster and is otherwise the same grader."""

    def __init__(self, grader: Grader, settings: GraderSection, root: Path, cluster: RaySection) -> None:
        self._grader, self._settings, self._root, self._cluster = grader, settings, root, cluster
        self._environment: Mapping[str, str] | None = None
        self.item_kinds, self.needs_query_text = grader.item_kinds, grader.needs_query_text
        self.scale, self.score_settings = grader.scale, grader.score_settings
        self.model_and_prompt, self.prompt = grader.model_and_prompt, grader.prompt
        self.read, self.reply_limit, self.free_text = grader.read, grader.reply_limit, grader.free_text
        self.probabilities, self.cosines = grader.probabilities, grader.cosines
        self.known_passages, self.cells_share = grader.known_passages, grader.cells_share

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._grader.identity

    @property
    def environment(self) -> Mapping[str, str] | None:
        """The environment of the last batch's worker."""
        return self._environment

    @property
    def model_to_load(self) -> str:
        return self._grader.model_to_load

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        """Yield answers as they arrive; lists may be empty, so that the caller is not blocked."""
        recipe = recipe_of(self._grader, self._settings, self._root)
        unanswered = ""
        # A passage's cells stay together: a model reads their common prefix once.
        passages = itertools.groupby(cells, lambda cell: (cell.query_id, cell.text))
        for batch, result in run(self._cluster, recipe, (list(group) for _, group in passages)):
            if isinstance(result, Lost):
                self._environment = None
                reason = f"ended each of the {MOST_ALONE} workers that graded only this"
                yield [(cell, Answer(None, "error", reason)) for cell in batch]
            elif result is None:
                yield []
            else:
                answers, self._environment, why = result
                unanswered = why or unanswered
                pairs = zip(batch, answers, strict=True)
                yield [(cell, answer) for cell, answer in pairs if answer is not None]
        if unanswered:
            raise UngradedError(unanswered)


class ClusterWriter:
    """A writer that writes on the workers of a cluster."""

    environment = meter = None

    def __init__(self, settings: LocalModelSettings, cluster: RaySection, memory: Path, section: str) -> None:
        writer: Writer = provided("models").writer(settings, memory, section)
        self._writer, self.plain, self.fitted = writer, writer.plain, writer.fitted
        self.estimate = writer.estimate
        self.model, self.new_tokens, self.seed = writer.model, writer.new_tokens, writer.seed
        self._settings, self._cluster, self._section = settings, cluster, section

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._writer.identity

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        recipe = partial(make_writer, self._settings, dict(self._writer.identity))
        with naming(self._section):
            for batch, texts in run(self._cluster, recipe, ([prompt] for prompt in prompts)):
                if isinstance(texts, Lost):
                    texts = [Unwritten("ended each worker that wrote it")]
                yield list(zip(batch, texts or (), strict=True))


class RayCluster:
    """A Ray cluster, for graders and writers."""

    name = "ray"
    summary = "any grader with a model, on a Ray cluster: `address` in [ray]"

    missing = staticmethod(missing_for_cluster)
    grader, writer = ClusterGrader, ClusterWriter


CLUSTER = RayCluster()
