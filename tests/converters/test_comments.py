"""Comment lines and labels of tables of floats, in runs and qrels."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import converters

RUN = "q1 Q0 b 1 3 S\nq1 Q0 a 2 2 S\n"
QRELS = "q1 0 a 1\nq1 0 b 0\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("plain", "commented", "n_comments"),
    [
        (RUN, f"# run of team\n{RUN}", 1),
        (RUN, f"{RUN}# end", 1),
        (RUN, f"#\n# q1 Q0 c 1 9 S\n  # x\n{RUN}#q2 Q0 d 1 1 S", 4),
        (RUN, "q1 Q0 b 1 3 S\n#q1 Q0 x 1 5 S\nq1 Q0 a 2 2 S\n", 1),
        (QRELS, f"# my judgments\n{QRELS}", 1),
        (QRELS, "#q1 0 x 1\nq1 0 a 1\n#q1 0 y 1\n# z\nq1 0 b 0\n   # indented\n", 4),
    ],
)
def test_comment_lines_are_skipped_and_counted(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    plain: str,
    commented: str,
    n_comments: int,
    packed: bool,
) -> None:
    expected, path = tmp_path / "plain", tmp_path / "commented"
    expected.write_text(plain)
    path.write_bytes(gzip.compress(commented.encode()) if packed else commented.encode())
    assert converters.sniff(path) == converters.sniff(expected)
    assert list(converters.read(path)) == list(converters.read(expected))
    lines = f"{n_comments} comment line{'s' * (n_comments > 1)}"
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: skipped {lines} ('#' first); trec_eval 9 takes none, and 10 not each: see `trecexam check`"
    ]


def test_a_comment_at_a_block_boundary_of_a_large_run_is_skipped(tmp_path: Path) -> None:
    lines = [f"q{n // 1000} Q0 doc{n % 1000:04} 1 {1000 - n % 1000} t\n" for n in range(400_000)]
    size = 4 * 1024 * 1024
    text = "".join(lines)
    # The comment's sign is the first byte of the second block.
    padding = size - text.rindex("\n", 0, size) - 1
    text = text.replace("Q0", "Q0" + "0" * padding, 1)
    assert text[size - 1] == "\n"
    (tmp_path / "x.run").write_text(f"{text[:size]}# here\n{text[size:]}")
    assert len(converters.read(tmp_path / "x.run", "run")) == len(lines)


@pytest.mark.parametrize("text", ["1.0", "1.", "1", "+1", "01.000"])
@pytest.mark.parametrize("line", ["q1 0 a {}\n", "query-id\tcorpus-id\tscore\nq1\ta\t{}\n"])
def test_whole_numbers_of_tables_of_floats_are_labels(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "x.qrels").write_text(line.format(text))
    assert [row.relevance for row in converters.read(tmp_path / "x.qrels", "qrels")] == [1]


@pytest.mark.parametrize("text", ["0.7", "1.5", "1e0", ".0", "1.0.0", "nan", "1_0"])
@pytest.mark.parametrize(
    ("line", "where"),
    [("q1 0 a {}\n", "(column 4)"), ("query-id\tcorpus-id\tscore\nq1\ta\t{}\n", "of document 'a'")],
)
def test_other_labels_are_refused_with_their_column(tmp_path: Path, text: str, line: str, where: str) -> None:
    (tmp_path / "x.qrels").write_text(line.format(text))
    with pytest.raises(converters.ConversionError) as caught:
        list(converters.read(tmp_path / "x.qrels", "qrels"))
    assert caught.value.reason == f"the label {where} is not a whole number: '{text}'"
