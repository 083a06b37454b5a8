"""Checks of bank files, by themselves or as a track's bank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import converters
from converters.bank_lines import BankLine, scan_bank
from converters.ir_dataset import dataset_queries
from converters.lines import open_bytes
from trecexam.bank.model import QUERY, STATEMENT, lines_by_query
from trecexam.errors import TrecexamError
from trecexam.extensions.banks.checks import Checked, check_lines
from trecexam.files.stamps import sniffed
from trecexam.folder import TrackFolder
from trecexam.inputs.track_graders import declared_kind


def check_files(paths: Sequence[Path]) -> Checked:
    """Checks these files together, as one bank.

    Raises:
        TrecexamError, ConversionError: one cannot be read, or is not a bank.
    """
    for path in paths:
        form = sniffed(path)
        if form not in (None, "bank"):
            raise TrecexamError(f"this is not a test bank but {form}; see `trecexam formats`", path=path)
    return check_lines(_lines([(str(path), path) for path in paths]))


def asks_a_bank(folder: TrackFolder) -> bool:
    """Return True where the grader uses items of an existing bank, not queries or sentences of responses."""
    kind = declared_kind(folder)
    asks_items = kind is None or kind.item_kinds.isdisjoint({QUERY, STATEMENT})
    return asks_items and bool(folder.bank(optional=True))


def check_track(folder: TrackFolder) -> Checked:
    """Check a track's bank, as `bank check`."""
    files = [(folder.shown(path), path) for path in folder.bank()]
    queries = folder.queries()
    texts: Mapping[str, str] = {}
    if queries is not None:
        texts = {query.query_id: query.text for query in converters.read(queries, "queries")}
    expected = {} if queries is None else dict.fromkeys(texts, folder.shown(queries))
    if queries is None and folder.config.track.dataset is not None:
        texts = {query.query_id: query.text for query in dataset_queries(folder.config.track.dataset)}
    lines = _lines(files, facets=folder.config.track.facets)
    return check_lines(lines, texts, expected)


def _lines(files: Sequence[tuple[str, Path]], *, facets: bool = False) -> Iterator[tuple[str, BankLine]]:
    for display_name, path in files:
        with open_bytes(path):
            # A dataset that is missing or inaccessible is not a finding.
            pass
        yield from ((display_name, line) for line in lines_by_query(scan_bank(path), facets=facets))
