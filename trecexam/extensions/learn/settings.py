"""[learn] of trecexam.toml: learning at each update, and its encoder."""

from __future__ import annotations

from pydantic import Field

from trecexam.config import Section


class LearnSection(Section):
    """Learning at each update, and the encoder of learned labels."""

    changes = "work"
    update: bool = Field(
        False,
        description="Learn at each update, too, where there are official judgments: out/learned.tsv and "
        "out/learned.qrels. Needs the extras learn and offline.",
    )
    encoder: str | None = Field(
        None,
        examples=["sentence-transformers/all-MiniLM-L6-v2"],
        description="A sentence-transformers model, a folder or hub id. Unset: the embedding grader's, else "
        "the extra 'offline'.",
    )
