"""Runs graders and writers on a cluster."""

from __future__ import annotations

from pathlib import Path

from trecexam.config import GraderSection, RaySection
from trecexam.extensions.cluster import missing_for_cluster
from trecexam.extensions.cluster.grader import ClusterGrader
from trecexam.extensions.cluster.writer import ClusterWriter
from trecexam.graders.base import Grader
from trecexam.graders.writing.base import LocalModelSettings


class RayCluster:
    """A Ray cluster, see `trecexam.graders.elsewhere.Elsewhere`."""

    name = "ray"
    summary = "any grader with a model, on a Ray cluster: `address` in [ray]"

    def missing(self) -> str:
        return missing_for_cluster()

    def grader(self, grader: Grader, settings: GraderSection, root: Path, cluster: RaySection) -> Grader:
        return ClusterGrader(grader, settings, root, cluster)

    def writer(
        self, model: LocalModelSettings, cluster: RaySection, memory: Path, section: str
    ) -> ClusterWriter:
        return ClusterWriter(model, cluster, memory, section)


CLUSTER = RayCluster()
