from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORPUS = sorted(path for path in (HERE / "corpus").iterdir() if path.is_file())


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_every_reader_gives_records_or_a_conversion_error_and_leaves_no_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spec = importlib.util.spec_from_file_location("fuzz_readers", HERE / "readers.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.read_all(path.read_bytes())
    assert list(tmp_path.iterdir()) == []
