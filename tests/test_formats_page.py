"""Each format in examples/formats.md says how it is recognised, and is, by an example."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import converters

ROOT = Path(__file__).parents[1]


def test_each_format_says_how_it_is_recognised() -> None:
    assert all(known.told_by for known in converters.formats())


def test_each_format_is_recognised_by_its_example_or_by_a_file_of_the_fuzz_corpus(tmp_path: Path) -> None:
    files = sorted((ROOT / "tests" / "fuzz" / "corpus").iterdir())
    for known in converters.formats():
        example = tmp_path / f"{known.name}{known.extensions[0] if known.extensions else ''}"
        example.write_text(known.example.replace("<TAB>", "\t") + "\n")
        files.append(example)
    recognised: set[str] = set()
    for path in files:
        with suppress(converters.ConversionError):
            recognised.add(converters.sniff(path))
    named = {
        known.name for known in converters.formats() if known.told_by.startswith("accepted where it is named")
    }
    assert {known.name for known in converters.formats()} - named <= recognised
