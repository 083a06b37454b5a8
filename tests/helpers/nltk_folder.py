"""The nltk data that TREC AutoJudge's package needs on import: stop words, and a folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def lay_out_nltk_data(folder: Path) -> Path:
    """Makes the folder for NLTK_DATA."""
    words = folder / "corpora" / "stopwords" / "english"
    words.parent.mkdir(parents=True)
    words.write_text("the\na\nof\n")
    (folder / "tokenizers" / "punkt").mkdir(parents=True)
    return folder


@contextmanager
def with_nltk_data() -> Iterator[None]:
    """While the block runs, the package can be imported without a network."""
    import nltk.data

    before = os.environ.get("NLTK_DATA")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NLTK_DATA"] = data = str(lay_out_nltk_data(Path(folder) / "nltk_data"))
        # Another test may have imported it, and it reads the variable once.
        nltk.data.path.insert(0, data)
        try:
            yield
        finally:
            nltk.data.path.remove(data)
            os.environ.pop("NLTK_DATA")
            if before is not None:
                os.environ["NLTK_DATA"] = before
