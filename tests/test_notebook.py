"""examples/notebook.ipynb runs from a clean kernel and gives its stored outputs."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pyterrier", reason="the extra `pyterrier` is not installed")

from notebooks import NOTEBOOK, executed  # noqa: E402

AGAIN = "what comes out is another thing: python tests/helpers/notebooks.py stores it; look at the difference"
STORED = nbformat.read(NOTEBOOK, as_version=4)


def outputs(notebook: Any) -> Iterator[tuple[str, str, str]]:
    """Cell, kind of output, text: six digits of floats, nothing of pictures, which depend on fonts."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            texts = output.get("data") or {output.get("name", output.output_type): output.get("text", "")}
            for kind, text in sorted(texts.items()):
                shown = "" if kind.startswith("image/") else text
                yield cell.id, kind, re.sub(r"\d\.\d{7,}", lambda match: f"{float(match[0]):.6f}", shown)


@pytest.mark.slow
def test_the_notebook_runs_and_gives_its_stored_outputs() -> None:
    assert list(outputs(executed(NOTEBOOK))) == list(outputs(STORED)), AGAIN


def test_the_stored_outputs_are_small_clean_and_complete() -> None:
    assert NOTEBOOK.stat().st_size < 300_000
    text = NOTEBOOK.read_text()
    for machine in ("/tmp", "/home", "/root", "/work", "/Users", "site-packages", "Traceback"):
        assert machine not in text, machine
    kinds = {kind for _, kind, _ in outputs(STORED)}
    assert kinds == {"text/plain", "text/html", "image/png", "stdout"}
    cells = [cell for cell in STORED.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells[:-1])


def test_the_stored_pictures_are_not_blank() -> None:
    from matplotlib.image import imread

    pictures = [
        base64.b64decode(output.data["image/png"])
        for cell in STORED.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == 2
    for picture in pictures:
        assert imread(io.BytesIO(picture), format="png").std() > 0.05
