from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import pytrec_eval
from campaign import SCALE, campaign, to_rate
from hypothesis import given, settings
from hypothesis import strategies as st
from support import make_small_track

import converters
import trecexam
from converters.errors import ConversionError
from converters.overrides import read_overrides
from converters.records import HumanRating
from trecexam import Track
from trecexam.cli.main import run
from trecexam.extensions.campaign.assessments import record_assessment
from trecexam.extensions.campaign.tables import judgment_table, read_judgment_table
from trecexam.features.override.overriding import take

FILES = ("qrels.txt", "qrels-6.txt", "judgments.tsv")


def judge(track: Track, who: str, **ratings: int | Literal["cannot"]) -> None:
    query = to_rate(track, "q1")
    for doc, rating in ratings.items():
        given = {"why": "x", "seconds": 1.5, "note": "n"}
        record_assessment(track.folder, query, f"q1-{doc}", "", rating, who=who, **given)  # type: ignore[arg-type]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_judgments_on_a_scale_become_qrels_that_trec_eval_accepts(graded: Path, tmp_path: Path) -> None:
    with campaign(graded, SCALE + 'rule = "majority"\n') as track:
        judge(track, "ada", d00=2, d01=0, d03="cannot")
        judge(track, "bob", d00=2, d01=1)
        judge(track, "Eve L", d00=0)
        done = track.judging.export(tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(FILES)
        assert done.table.rows == ((2, 6, 0),)
        # "Cannot judge" does not count as 0.
        assert lines(tmp_path / "out/qrels.txt") == ["q1 0 q1-d00 2", "q1 0 q1-d01 0"]
        assert lines(tmp_path / "out/qrels-6.txt") == [
            "q1 Q0 q1-d00 2 0.6667 Eve_L+ada+bob",
            "q1 Q0 q1-d01 0 0.5 ada+bob",
        ]
        with (tmp_path / "out/qrels.txt").open() as file:
            qrels = pytrec_eval.parse_qrel(file)
        run = {"q1": {"q1-d01": 2.0, "q1-d00": 1.0}}
        assert pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)["q1"]["recip_rank"] == 0.5
        for name in FILES[:2]:
            rows = list(converters.read(tmp_path / "out" / name, "qrels"))
            assert [(row.query_id, row.doc_id, row.relevance) for row in rows] == [
                ("q1", "q1-d00", 2), ("q1", "q1-d01", 0),
            ]  # fmt: skip
        header, first, *_ = lines(tmp_path / "out/judgments.tsv")
        assert header.split("\t")[:8] == [
            "query_id", "doc_id", "item_id", "assessor", "rating", "seconds", "time", "note",
        ]  # fmt: skip
        assert first.split("\t")[:6] == ["q1", "q1-d00", "", "ada", "2", "1.5"]


def test_item_ratings_become_labels_by_the_rule_of_the_track_without_graders(
    graded: Path, tmp_path: Path
) -> None:
    with campaign(graded, '[scores]\nlabel = "count"\nmin_rating = 3\n') as track:
        query = to_rate(track, "q1")
        for item, rating in (("q1/0", 3), ("q1/1", 5), ("q1/2", 2), ("q1/3", "cannot")):
            record_assessment(track.folder, query, "q1-d00", item, rating, who="ada", why="x")  # type: ignore[arg-type]
        record_assessment(track.folder, query, "q1-d01", "q1/0", "cannot", who="ada", why="x")
        track.judging.export(tmp_path)
    assert lines(tmp_path / "qrels.txt") == ["q1 0 q1-d00 2"]
    assert lines(tmp_path / "qrels-6.txt") == ["q1 Q0 q1-d00 2 1 ada"]


def decide(track: Track, doc: str, rating: int, item: str = "", who: str = "org") -> None:
    query = to_rate(track, "q1")
    take(track.folder, query, f"q1-{doc}", item, rating, who, "read both", adjudicates=True)


def test_an_adjudicator_counts_in_the_share_of_people_that_is_the_confidence(
    graded: Path, tmp_path: Path
) -> None:
    with campaign(graded, SCALE + 'rule = "adjudicated"\n') as track:
        judge(track, "ada", d00=2, d01=1, d03=2, d04=2)
        judge(track, "bob", d00=1, d01=0, d03=1, d04=1)
        judge(track, "org", d03=0)
        decide(track, "d00", 1)
        # A decision that neither of them gave; and one where she had another rating before.
        decide(track, "d03", 2)
        decide(track, "d04", 0)
        done = track.judging.export(tmp_path)
    assert lines(tmp_path / "qrels-6.txt") == [
        "q1 Q0 q1-d00 1 0.6667 ada+bob+org",
        "q1 Q0 q1-d03 2 0.6667 ada+bob+org",
        "q1 Q0 q1-d04 0 0.3333 ada+bob+org",
    ]
    # Undecided passages have no label.
    assert [*done["undecided"]] == [1]


def test_labels_from_adjudicated_items_have_a_confidence_above_0(graded: Path, tmp_path: Path) -> None:
    with campaign(graded, '[judging]\nrule = "adjudicated"\n') as track:
        for who, rating in (("ada", 5), ("bob", 3)):
            record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "q1/0", rating, who=who, why="x")
        decide(track, "d00", 0, "q1/0")
        assert track.judging.export(tmp_path).table.rows == ((1, 3, 0),)
    assert lines(tmp_path / "qrels-6.txt") == ["q1 Q0 q1-d00 0 0.3333 ada+bob+org"]


def test_an_export_lists_passages_that_wait_for_adjudication(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with campaign(graded, SCALE + 'rule = "adjudicated"\n') as track:
        for who, step in (("ada", 0), ("bob", 1)):
            judge(track, who, d00=step, d01=2 * step, d03=1)
            record_assessment(track.folder, to_rate(track, "q3"), "q3-d00", "", step, who=who)
        command = ["judge", "export", str(graded), "-o", str(tmp_path / "out")]
        capsys.readouterr()
        assert run(command) == 1
        assert lines(tmp_path / "out/qrels.txt") == ["q1 0 q1-d03 1"]
        said = capsys.readouterr().err
        assert "a decision between assessors: 3 passages (topic q1: 2, q3: 1)" in said
        assert "judge agreement" in said
        decide(track, "d00", 1)
        decide(track, "d01", 1)
        take(track.folder, to_rate(track, "q3"), "q3-d00", "", 1, "org", "read both", adjudicates=True)
    assert run(command) == 0
    assert "waiting" not in capsys.readouterr().err


def test_all_judgments_are_exported_and_imported_once(graded: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(graded, tmp_path / "other"))
    with campaign(graded) as track:
        judge(track, "ada", d00=2, d01="cannot")
        judge(track, "ada", d00=1)
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "", None, who="ada")
        record_assessment(track.folder, to_rate(track, "q1"), "q1-d00", "q1/0", 5, who="bob")
        track.judging.export(tmp_path / "out")
    with campaign(other) as track:
        table = tmp_path / "out/judgments.tsv"
        done = track.judging.take_in(table)
        assert done.table.rows == ((5, 0, 0),)
        for name in ("judgments.tsv", "overrides.tsv"):
            assert stored(other / name) == stored(graded / name)
        assert track.judging.take_in(table).table.rows[0][0] == 0
        track.judging.export(tmp_path / "again")
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def stored(path: Path) -> list[HumanRating]:
    return [row for _, row in read_overrides(path, lambda error: pytest.fail(str(error)))]


WORD = st.sampled_from(["ann", "a b"])
DOC = st.sampled_from(["q1-d00", "q1-d01", "not-pooled"])
WHOLE = st.builds(
    HumanRating, st.just("q1"), DOC, st.just(""), st.none() | st.integers(0, 2), WORD, WORD,
    WORD | st.just(""), st.just(""), st.just(""), st.none() | st.floats(0, 9), WORD | st.just(""),
    st.sampled_from(["", "undone", "adjudicated"]), st.just(False), st.just(""),
)  # fmt: skip
ITEM = st.builds(lambda row: row._replace(item_id="q1/0"), WHOLE)
OF_SCALE = {"grader": "overrides.tsv", "track": "judgments.tsv"}
ROWS = st.lists(
    st.tuples(WHOLE, st.sampled_from([*OF_SCALE])) | st.tuples(ITEM, st.just("grader")), max_size=8
).map(lambda rows: [row._replace(scale=scale) for row, scale in rows])


@pytest.fixture(scope="module")
def empty_track(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Track]:
    root = make_small_track(tmp_path_factory.mktemp("import") / "track", queries=1, docs=2, items=1)
    (root / "trecexam.toml").write_text(SCALE)
    with trecexam.open_track(root) as track:
        yield track


@settings(max_examples=30)
@given(ROWS, ROWS)
def test_an_import_adds_repeated_lines_as_often_as_given(
    empty_track: Track, known: list[HumanRating], new: list[HumanRating]
) -> None:
    root, folder = empty_track.folder.root, empty_track.folder
    for path in (folder.overrides(), folder.judgments()):
        path.unlink(missing_ok=True)

    def both() -> dict[str, list[HumanRating]]:
        paths = {scale: root / name for scale, name in OF_SCALE.items()}
        return {scale: stored(path) if path.exists() else [] for scale, path in paths.items()}

    def on(scale: str, rows: list[HumanRating]) -> list[HumanRating]:
        return [row._replace(scale="") for row in rows if row.scale == scale]

    table = root.parent / "table.tsv"
    table.write_bytes(judgment_table(known))
    assert empty_track.judging.take_in(table).table.rows[0][0] == len(known)
    assert both() == {scale: on(scale, known) for scale in OF_SCALE}
    before = both()
    table.write_bytes(judgment_table([*known, *new]))
    assert empty_track.judging.take_in(table).table.rows[0][0] == len(new)
    assert both() == {scale: [*before[scale], *on(scale, new)] for scale in OF_SCALE}
    assert empty_track.judging.take_in(table).table.rows[0][0] == 0


def test_a_line_that_cannot_be_stored_does_not_stop_the_others(empty_track: Track) -> None:
    table = empty_track.folder.root.parent / "hostile.tsv"
    rows = [
        "q1\td\tx\x1b[31mda\t1\t",
        "q1\td\tada\u202e\t1\t",
        f"q1\td\t{'a' * 201}\t1\t",
        "q1\td\tada\t1\tn\rn",
        "q1\td\u00a0d\tada\t1\t",
        "q1\td\tgood\t1\tn",
    ]
    table.write_text(
        "query_id\tdoc_id\tassessor\trating\tnote\n" + "".join(f"{row}\n" for row in rows), newline=""
    )
    empty_track.folder.judgments().unlink(missing_ok=True)
    done = empty_track.judging.take_in(table)
    assert done.table.rows == ((1, 0, 5),)
    assert [row.line for row in done.rejected] == [2, 3, 4, 5, 6]
    assert [row.who for row in stored(empty_track.folder.judgments())] == ["good"]


def test_an_import_rejects_what_an_update_would_and_names_what_is_outside_the_pool(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = graded / "trecexam.toml"
    config.write_text(config.read_text() + SCALE)
    table = tmp_path / "table.tsv"
    table.write_text(
        "query_id\tdoc_id\titem_id\tassessor\trating\tscale\n"
        "q1\tq1-d00\t\tada\t2\t\n"
        "q9\tq9-d00\t\tada\t1\t\n"
        "q1\tq1-d01\t\tada\t4\t\n"
        "q1\tq1-d01\tq1/77\tada\t4\tgrader\n"
        "q1\tnowhere\t\tada\t1\t\n"
    )
    assert run(["judge", "import", str(graded), str(table)]) == 1
    said = capsys.readouterr().err
    for line, reason in (
        (3, "query 'q9', which the bank does not have"),
        (4, "is 4, and `scale` in [judging] is 0..2"),
        (5, "item 'q1/77', which query 'q1' does not have"),
    ):
        assert any(
            row.startswith(f"rejected: {table}:{line}: ") and reason in row for row in said.splitlines()
        )
    assert "2 new judgments, 0 already in the track, 3 lines rejected" in said
    outside = "1 new judgment outside the pool; the first is line 6: 'nowhere' of query 'q1'"
    assert f"not counted: {outside}" in said
    assert [row.doc_id for row in stored(graded / "judgments.tsv")] == ["q1-d00", "nowhere"]
    assert run(["watch", str(graded), "--once"]) == 0
    # Known lines are skipped, whatever became of them.
    (graded / "judgments.tsv").write_text(
        "query_id\tdoc_id\trating\twho\twhy\tscale\nq9\tq9-d00\t1\tada\timported\t0..2\n"
    )
    with trecexam.open_track(graded) as track:
        table.write_text("query_id\tdoc_id\tassessor\trating\nq9\tq9-d00\tada\t1\n")
        done = track.judging.take_in(table)
    assert done.table.rows == ((0, 1, 0),)
    assert len(done.notes) == 1


def test_unreadable_judgments_are_reported_and_do_not_replace_good_qrels(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with campaign(graded) as track:
        judge(track, "ada", d00=2)
    out = tmp_path / "out"
    command = ["judge", "export", str(graded), "-o", str(out)]
    assert run(command) == 0
    judgments = graded / "judgments.tsv"
    text = judgments.read_text()
    judgments.write_text(text + "odd\n")
    capsys.readouterr()
    assert run(command) == 1
    assert "judgments.tsv:3: " in capsys.readouterr().err
    assert lines(out / "qrels.txt") == ["q1 0 q1-d00 2"]
    judgments.write_text("who\twhy\n" + text)
    assert run(command) == 2
    assert "nothing was exported" in capsys.readouterr().err
    assert lines(out / "qrels.txt") == ["q1 0 q1-d00 2"]


ID = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
TEXT = st.lists(ID, min_size=1, max_size=3).map(" ".join)
DIGEST = st.binary(min_size=32, max_size=32).map(bytes.hex) | st.just("")
KIND = st.sampled_from(["", "adjudicated", "undone"])
SECONDS = st.none() | st.floats(0, allow_infinity=False)
RATING = st.builds(
    HumanRating, ID, ID, ID | st.just(""), st.none() | st.integers(0, 5), TEXT, TEXT, TEXT | st.just(""),
    DIGEST, DIGEST, SECONDS, TEXT | st.just(""), KIND, st.just(False), st.just(""),
).flatmap(lambda row: st.sampled_from([row, row._replace(rating=None, cannot=True)]))  # fmt: skip
TABLE_ROW = st.builds(
    lambda row, scale: row._replace(scale=scale), RATING, st.sampled_from(["", "track", "grader", "0..3"])
)
TABLE_ROWS = st.lists(TABLE_ROW, max_size=6)


def read(path: Path) -> tuple[list[HumanRating], list[str]]:
    refused: list[ConversionError] = []
    rows = [row for _, row in read_judgment_table(path, refused.append)]
    return rows, [str(error) for error in refused]


@given(TABLE_ROWS)
def test_a_written_table_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[HumanRating]
) -> None:
    path = tmp_path_factory.mktemp("table") / "judgments.tsv"
    path.write_bytes(judgment_table(rows))
    assert read(path) == (rows, [])


def test_a_foreign_table_needs_four_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(
        "rating\tassessor\tplace\tdoc_id\tquery_id\n2\tada\tx\td1\tq1\n\ncannot\tbob\tx\td1\tq1\n"
    )
    rows, refused = read(path)
    assert refused == []
    assert rows == [
        HumanRating("q1", "d1", "", 2, "ada", "imported"),
        HumanRating("q1", "d1", "", None, "bob", "imported", cannot=True),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("q1\td1\tada\t7\ttrack", "neither 0..5 nor empty"),
        ("q1\td1\t\t1\ttrack", "no assessor"),
        ("q1\td1\tada\t1\tours", "the scale is not track, grader or empty: 'ours'"),
        ("q1\td1\tada\t1\ttrack\tmore", "more columns than the header line"),
    ],
)
def test_a_bad_line_is_rejected_with_its_number_and_the_others_count(
    tmp_path: Path, line: str, reason: str
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(f"query_id\tdoc_id\tassessor\trating\tscale\n{line}\nq1\td2\tada\t1\ttrack\n")
    rows, (refused,) = read(path)
    assert [row.doc_id for row in rows] == ["d2"]
    assert refused.startswith(f"{path}:2: ")
    assert reason in refused


@pytest.mark.parametrize(
    ("header", "reason"),
    [("query_id\tdoc_id\trating", "lacks assessor"), ("query_id\tdoc_id\tassessor\trating\trating", "twice")],
)
def test_a_table_without_a_usable_header_is_rejected_as_a_whole(
    tmp_path: Path, header: str, reason: str
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(header + "\n")
    with pytest.raises(ConversionError, match=reason):
        read(path)
