"""Fuzzes every reader: any bytes must give records or a ConversionError, and never take long.

pip install atheris
python tests/fuzz/readers.py tests/fuzz/corpus -max_total_time=60

What it finds goes into tests/fuzz/corpus/ as a file, which tests/fuzz/test_corpus.py reads for ever after.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import converters  # noqa: E402


def read_all(data: bytes) -> None:
    """Reads the bytes in every format, whatever they look like, and sniffs the format."""
    with tempfile.TemporaryDirectory(prefix="trecexam-fuzz-") as folder:
        path = Path(folder) / "file.jsonl"
        path.write_bytes(data)
        for name in (None, *(known.name for known in converters.formats())):
            try:
                for _ in converters.read(path, name):
                    pass
            except converters.ConversionError:
                continue


if __name__ == "__main__":
    import atheris

    logging.disable(logging.CRITICAL)
    atheris.instrument_all()
    atheris.Setup(sys.argv, read_all)
    atheris.Fuzz()
