"""Runs a writer on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.extensions.cluster import missing_for_cluster
from trecexam.extensions.cluster.grader import ClusterGrader
from trecexam.extensions.cluster.pool import Lost, Pool
from trecexam.extensions.cluster.settings import RaySection
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.base import LocalModelSettings, Writer, naming


@dataclass(frozen=True)
class WriterRecipe:
    """Creates the writer in a worker of a cluster."""

    settings: LocalModelSettings
    identity: Mapping[str, Any]

    def __call__(self) -> Writer:
        """Create the writer, load its model and let it write once.

        Raises:
            GraderError: it cannot be made here, or would not write as the one that wants it.
        """
        folder = self.settings.folder
        if not folder.is_dir():
            raise GraderError(
                f"'{folder}' is not a folder on this machine of the cluster: put the model there"
            )
        writer: Writer = provided("models").writer(self.settings, None, "grader")
        if writer.identity != self.identity:
            raise GraderError(
                f"the model in '{folder}' differs on that machine: give all machines of the cluster the same"
            )
        for _ in writer.write(["What is the capital of France?"]):
            pass
        return writer


class ClusterWriter:
    """A writer that writes on the workers of a cluster."""

    meter = None

    def __init__(self, settings: LocalModelSettings, cluster: RaySection, memory: Path, section: str) -> None:
        writer: Writer = provided("models").writer(settings, memory, section)
        self._writer, self.plain, self.fitted = writer, writer.plain, writer.fitted
        self.estimate = writer.estimate
        self.model, self.new_tokens, self.seed = settings.name, settings.new_tokens, settings.seed
        self._settings = settings
        self._cluster = cluster
        self._section = section

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._writer.identity

    @property
    def environment(self) -> Mapping[str, str] | None:
        return self._writer.environment

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        recipe: Callable[[], object] = WriterRecipe(self._settings, dict(self._writer.identity))
        pool: Pool[str] = Pool(self._cluster, recipe, "complete")
        with naming(self._section):
            for batch, texts in pool.run([prompt] for prompt in prompts):
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
