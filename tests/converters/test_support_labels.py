"""Tables of support labels."""

from __future__ import annotations

from pathlib import Path

from converters import ConversionError
from converters.support_labels import SupportLabel, read_support_labels


def read(path: Path) -> tuple[list[SupportLabel], list[ConversionError]]:
    errors: list[ConversionError] = []
    return list(read_support_labels(path, errors.append)), errors


def test_labels_are_read_by_column_name(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text(
        "label\twho\tdoc_id\tsentence\tquery_id\trun\nfull_support\tA\td 1\t2\tq\tr\nuncited\tA\t\t3\tq\tr\n"
        "no_support\tA\t\t4\tq\tr\n"
    )
    labels, errors = read(path)
    assert labels == [SupportLabel(2, "r", "q", 2, "d 1", 2)]
    assert [(error.line, error.reason) for error in errors] == [
        (4, "'no_support' has no passage: doc_id is empty")
    ]
