"""The table of examples/formats.md is what formats declare; each row has a file in the fuzz corpus."""

from __future__ import annotations

from pathlib import Path

import converters
from converters.convert import targets

ROOT = Path(__file__).parents[1]
HEADER = "| format | read | written | told apart by | converts to |\n|---|---|---|---|---|\n"


def rows() -> list[str]:
    return [
        f"| `{known.name}` | {known.description} | {known.written_as or 'yes' if known.write else 'no'} "
        f"| {known.told_by} | {', '.join(f'`{name}`' for name in targets(known.name))} |"
        for known in converters.formats()
    ]


def test_the_page_has_the_table_that_the_registry_gives() -> None:
    """Where this fails, the rows are to be pasted."""
    table = (ROOT / "examples" / "formats.md").read_text().partition(HEADER)[2].partition("\n\n")[0]
    assert table.split("\n") == rows()
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
