"""Error messages: suggestions for misspelled names, and bounded length."""

from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.cli.main import run

LONG = "x" * 5_000
#: Overlong user input, in all places where a message repeats it.
TOO_LONG = (
    ("leaderboard", "TRACK", "-m", LONG),
    ("leaderboard", "TRACK", "-m", f"P(rel={LONG})@5"),
    ("leaderboard", "TRACK", "-m", f"{LONG}:P@5"),
    ("leaderboard", "TRACK", "--grader", LONG),
    ("leaderboard", LONG),
    (LONG,),
    ("correlate", "TRACK", "--official-measure", LONG),
    ("compare", "TRACK", "--baseline", LONG),
    ("plot", LONG, "TRACK", "-o", "fig.pdf"),
    ("override", "TRACK", "--query", "q1", "--doc", LONG, "--rating", "1", "--who", "a", "--why", "b"),
    ("holes", "TRACK", "--depth", LONG),
    ("init", "new", "--grader", LONG),
    ("convert", "TRACK/trecexam.toml", "out.tsv", "--from", LONG),
    ("fill", "TRACK", "--qrels", "TRACK/trecexam.toml", "-o", "merged.qrels", "--by", LONG),
    ("serve", "TRACK", "--public-url", LONG),
)


@pytest.mark.parametrize("words", TOO_LONG, ids=lambda words: " ".join(words)[:40])
def test_long_input_is_shortened_in_the_message(
    words: tuple[str, ...],
    small_track: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([word.replace("TRACK", str(small_track)) for word in words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("trecexam: ")
    assert len(printed.err.splitlines()) == 1
    # The remedy is still shown after the input.
    assert 40 < len(printed.err) < 1_500, printed.err
    assert "x" * 500 not in printed.err
