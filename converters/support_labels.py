"""Labels of support from a table: `run, query_id, sentence, doc_id, label`, as `out/support.tsv` has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from converters.errors import ConversionError
from converters.lines import decode, iter_filled

#: What TREC RAG 2024 calls them; the place is the rating.
LABELS = ("no_support", "partial_support", "full_support")
#: What people may say in place of a rating, 0..2.
WORDS = {"no": 0, "none": 0, "partial": 1, "full": 2, **{name: rating for rating, name in enumerate(LABELS)}}
#: What replaces a label, and why: see `trecexam.extensions.support.tables`.
NO_LABEL = frozenset(("no_text", "not_graded", "unparsed", "refused", "error", "out_of_range", "uncited"))
_COLUMNS = ("run", "query_id", "sentence", "doc_id", "label")


class SupportLabel(NamedTuple):
    """A label of how far a cited passage supports a sentence: `rating` is 2 full, 1 partial, 0 not.

    `place` is the sentence's in its response, from 1; `line` is where the label stands.
    """

    line: int
    run: str
    query_id: str
    place: int
    doc_id: str
    rating: int


def read_support_labels(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None]
) -> Iterator[SupportLabel]:
    """Reads labels from a TSV with a header; skips rows without a label.

    Labels are full_support, partial_support and no_support.

    Args:
        on_error: takes what is wrong with a line; the others are read.

    Raises:
        ConversionError: the file cannot be read to its end, is empty, or lacks a column.
    """
    column_indices: list[int] | None = None
    for number, line in iter_filled(path):
        fields = [field.strip() for field in decode(path, number, line).split("\t")]
        if column_indices is None:
            lacks = [name for name in _COLUMNS if name not in fields]
            if lacks:
                raise ConversionError(
                    path,
                    number,
                    f"no column `{lacks[0]}`: the header is {', '.join(_COLUMNS)}, separated by tabs",
                )
            column_indices = [fields.index(name) for name in _COLUMNS]
            continue
        try:
            if len(fields) <= max(column_indices):
                raise ConversionError(path, number, f"{len(fields)} columns, and the header has more")
            run, query_id, sentence_number, doc_id, label = (fields[column] for column in column_indices)
            if not sentence_number.isdecimal() or len(sentence_number) > 9 or int(sentence_number) < 1:
                raise ConversionError(
                    path, number, f"'{sentence_number[:40]}' is not a sentence: sentences are numbered from 1"
                )
            if label not in LABELS and label not in NO_LABEL:
                label_names = ", ".join(LABELS)
                raise ConversionError(
                    path, number, f"'{label[:40]}' is not a label; the labels are {label_names}"
                )
            if label in LABELS and not doc_id:
                raise ConversionError(path, number, f"'{label}' has no passage: doc_id is empty")
        except ConversionError as error:
            on_error(error)
            continue
        if label in LABELS:
            yield SupportLabel(number, run, query_id, int(sentence_number), doc_id, LABELS.index(label))
