from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT, until


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two machines with one CPU each; tests that remove one add another."""
    pytest.importorskip("ray")
    import ray_cluster

    with pytest.MonkeyPatch.context() as patch:
        # Workers get their path from the machine they are on, as on a real cluster.
        path = [str(ROOT), str(ROOT / "tests" / "helpers"), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
        # A token in the user's environment must not affect these tests.
        patch.setenv("RAY_AUTH_MODE", "disabled")
        with ray_cluster.cluster(2) as made:
            yield made
    until(lambda: not _servers(), 10)


@pytest.fixture(autouse=True)
def no_worker_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves an actor on the cluster fails."""
    yield
    if "cluster" in request.fixturenames:
        from ray_cluster import actors

        until(lambda: not actors(), 20)


def _servers() -> list[str]:
    """Children of this process that serve a cluster."""
    found = subprocess.run(["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return [
        line for line in found.stdout.splitlines() if Path(line.split()[0]).name in {"raylet", "gcs_server"}
    ]
