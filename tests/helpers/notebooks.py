"""Runs examples/notebook.ipynb in a new kernel; as a program, it stores the outputs in the file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def executed(path: Path, *, timeout: float = 120) -> NotebookNode:
    """The notebook with the outputs of a run in a separate folder and home.

    Raises:
        CellExecutionError: a cell raised an error.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as home:
        own = dict.fromkeys(("HOME", "IPYTHONDIR", "MPLCONFIGDIR", "TMPDIR"), home)
        environment = {**os.environ, **own, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
        environment.pop("MPLBACKEND", None)
        manager = AsyncKernelManager(
            transport="ipc",
            ip=str(Path(home) / "kernel"),
            # Without installed kernels, only the current Python is used.
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
        )
        client = NotebookClient(
            notebook, km=manager, timeout=timeout, record_timing=False, resources={"metadata": {"path": home}}
        )
        client.owns_km = True
        client.execute(env=environment)
    return notebook


if __name__ == "__main__":
    made = executed(NOTEBOOK)
    # Kernel metadata depends on this machine.
    made.metadata = nbformat.read(NOTEBOOK, as_version=4).metadata
    nbformat.write(made, NOTEBOOK)
