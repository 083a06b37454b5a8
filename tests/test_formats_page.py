"""Each format in examples/formats.md says how it is recognised, and has a file in the fuzz corpus."""

from __future__ import annotations

from pathlib import Path

import converters

ROOT = Path(__file__).parents[1]


def test_each_format_says_how_it_is_recognised() -> None:
    assert all(known.told_by for known in converters.formats())


def test_each_row_has_a_file_in_the_fuzz_corpus_that_its_reader_reads() -> None:
    corpus = sorted((ROOT / "tests" / "fuzz" / "corpus").iterdir())
    told: set[str] = set()
    for path in corpus:
        try:
            told.add(converters.sniff(path))
        except converters.ConversionError:
            continue
    named = {
        known.name for known in converters.formats() if known.told_by.startswith("accepted where it is named")
    }
    assert {known.name for known in converters.formats()} - named <= told
