"""Runs a grader on a cluster. Its grades, and their key in the store, are the same as without a cluster."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.cluster.pool import Lost, Pool
from trecexam.extensions.cluster.settings import RaySection
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders import available
from trecexam.graders.base import Answer, Cell, Grader, UngradedError


class WorkerAnswers(NamedTuple):
    """A worker's answers to a list of cells.

    Attributes:
        answers: None for cells without one.
        environment: of the answers, see `Grader`.
        unanswered: why cells may get an answer later; "" where that is not so.
    """

    answers: list[Answer | None]
    environment: Mapping[str, str] | None
    unanswered: str = ""


@dataclass
class GraderWorker:
    """The interface of a grader in a worker."""

    grader: Grader

    def grade(self, cells: Sequence[Cell]) -> WorkerAnswers:
        """Return the answers to these cells."""
        answers: dict[Cell, Answer] = {}
        unanswered = ""
        try:
            for batch in self.grader.grade(cells):
                answers.update(batch)
        except UngradedError as error:
            unanswered = str(error)
        return WorkerAnswers([answers.get(cell) for cell in cells], self.grader.environment, unanswered)


@dataclass(frozen=True)
class GraderRecipe:
    """Creates the grader in a worker, from the same settings and prompt file.

    Attributes:
        files: name -> content of the files of the track that the settings name.
        identity: of the daemon's grader. A worker whose own differs does not grade.
    """

    settings: GraderSection
    files: Mapping[str, bytes]
    identity: Mapping[str, Any]

    def __call__(self) -> GraderWorker:
        """Creates the grader, loads its model and lets it answer once.

        Raises:
            GraderError: it cannot be made here, or would not grade as the daemon's.
        """
        model = self.settings.model
        if model is not None and Path(model).is_absolute() and not Path(model).is_dir():
            raise GraderError(
                f"'{model}' is not a folder on this machine of the cluster: put the model there, or give "
                "`model` a hub id"
            )
        with tempfile.TemporaryDirectory(prefix="trecexam-") as folder:
            root = Path(folder)
            for name, content in self.files.items():
                (root / name).write_bytes(content)
            grader = available()[self.settings.name].create(self.settings, root)
            worker_identity = dict(grader.identity)
        different = sorted(
            key
            for key in worker_identity.keys() | self.identity
            if worker_identity.get(key) != self.identity.get(key)
        )
        if different:
            raise GraderError(
                f"the grader on that machine differs from this one in {', '.join(different)}: give all "
                "machines of the cluster the same model files and the same trecexam"
            )
        # A worker's end here is not caused by a cell.
        kind = min(grader.item_kinds)
        item = Item("q", "q/1", "What is the capital of France?", kind, ("Paris",))
        for _ in grader.grade([Cell("q", "capital of France", "d", "Paris is the capital of France.", item)]):
            pass
        return GraderWorker(grader)


class ClusterGrader(Grader):
    """A grader that grades on the workers of a cluster and is otherwise the same grader."""

    def __init__(self, grader: Grader, settings: GraderSection, root: Path, cluster: RaySection) -> None:
        self._grader, self._settings, self._root, self._cluster = grader, settings, root, cluster
        self._environment: Mapping[str, str] | None = None
        for name in Grader.__annotations__:
            setattr(self, name, getattr(grader, name))

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
        pool: Pool[Cell] = Pool(self._cluster, recipe, "grade")
        unanswered = ""
        # A passage's cells stay together: a model reads what they begin with once.
        passages = (
            list(group) for _, group in itertools.groupby(cells, lambda cell: (cell.query_id, cell.text))
        )
        for batch, result in pool.run(passages):
            if isinstance(result, Lost):
                self._environment = None
                reason = f"ended each of the {result.deaths} workers that graded only this"
                yield [(cell, Answer(None, "error", reason)) for cell in batch]
            elif result is None:
                yield []
            else:
                self._environment = result.environment
                unanswered = result.unanswered or unanswered
                answers = zip(batch, result.answers, strict=True)
                yield [(cell, answer) for cell, answer in answers if answer is not None]
        if unanswered:
            raise UngradedError(unanswered)


def recipe_of(grader: Grader, settings: GraderSection, root: Path) -> GraderRecipe:
    """The recipe to create this grader on any machine.

    A model in a folder of the track is looked for under the same absolute path on every machine. The
    prompt file travels with the settings.
    """
    # The metric runs here, where the user's function is available.
    changed: dict[str, Any] = {"metric": None}
    files: dict[str, bytes] = {}
    if settings.model is not None:
        places = (root / settings.model, Path(settings.model))
        changed["model"] = next((str(p.absolute()) for p in places if p.is_dir()), settings.model)
    if settings.prompt is not None and Path(settings.prompt).suffix.lower() in PROMPT_SUFFIXES:
        path = root / settings.prompt
        changed["prompt"] = path.name
        files[path.name] = path.read_bytes()
    return GraderRecipe(settings.model_copy(update=changed), files, dict(grader.identity))
