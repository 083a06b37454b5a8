from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from support import labels_of, printed, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.scores import Cover

ANN = ["--who", "ann", "--why", "read it"]


@pytest.fixture
def graded(graded: Path) -> Path:
    """A graded track without official judgments: people rate whole passages on the grader's scale."""
    (graded / "qrels.txt").rename(graded / "aside.qrels")
    return graded


def give(track: Path, *args: str, status: int = 0) -> None:
    assert run(["override", str(track), *args]) == status


def human_states(track: Path) -> list[tuple[str, str]]:
    rows = [line.split("\t") for line in (track / "out/human.tsv").read_text().splitlines()]
    return [(row[5], row[-1]) for row in rows[1:]]


def test_a_passage_label_by_a_person_is_in_the_qrels_next_to_that_of_the_grader(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = labels_of(graded / "out/rubric.qrels")
    (query_id, doc_id), machine = next(iter(before.items()))
    rating = (machine + 2) % 6
    give(graded, "--query", query_id, "--doc", doc_id, "--rating", str(rating), *ANN)
    assert f"{rating} (ann) in place of the grader's {machine}" in capsys.readouterr().err
    assert run(["watch", str(graded), "--once"]) == 0
    assert labels_of(graded / "out/rubric.qrels") == before | {(query_id, doc_id): rating}
    header, row = (graded / "out/human.tsv").read_text().splitlines()
    found = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert (found["rating"], found["machine"], found["who"], found["why"], found["state"]) == (
        str(rating),
        str(machine),
        "ann",
        "read it",
        "counts",
    )
    board = json.loads((graded / "out/leaderboard.json").read_text())
    assert board["human_ratings"] == {"cells": 0, "passages": 1, "who": ["ann"]}
    manifest = json.loads((graded / "out/manifest.json").read_text())
    assert manifest["counts"]["human_passages"] == 1
    assert "overrides.tsv" in manifest["inputs"]


def test_the_rating_of_one_cell_changes_cover_as_a_recount_does(graded: Path) -> None:
    with trecexam.open_track(graded) as track:
        board = track.leaderboard([Cover(rel=5) @ 8])
        grades = list(track.grades())
        reached = {(g["query_id"], g["item_id"]) for g in grades if g["rating"] == 5}
        missed = next(g for g in grades if (g["query_id"], g["item_id"]) not in reached)
        track.override(
            missed["query_id"], missed["doc_id"], 5, item=missed["item_id"], who="ann", why="it does"
        )
        after = track.leaderboard([Cover(rel=5) @ 8])
    was = {row.run: row.scores[0].mean for row in board.rows}
    rises = {row.run: row.scores[0].mean - was[row.run] for row in after.rows}
    # Three queries of four items: one more item reached is a twelfth, for the runs that have the passage.
    assert {round(rise, 9) for rise in rises.values()} <= {0.0, round(1 / 12, 9)}
    assert any(rise > 0 for rise in rises.values())


def test_ratings_of_two_people_on_one_cell_are_both_kept_and_the_last_counts(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    where = ["--query", query_id, "--doc", doc_id]
    give(graded, *where, "--rating", "1", *ANN)
    give(graded, *where, "--rating", "3", "--who", "bob", "--why", "disagree")
    assert "ann had said 1: read it; both are kept" in capsys.readouterr().err
    assert run(["watch", str(graded), "--once"]) == 0
    assert human_states(graded) == [("ann", "replaced"), ("bob", "counts")]
    assert labels_of(graded / "out/rubric.qrels")[query_id, doc_id] == 3


def test_terminal_control_characters_written_by_others_are_escaped(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    (graded / "overrides.tsv").write_text(
        f"query_id\tdoc_id\trating\twho\twhy\n{query_id}\t{doc_id}\t1\tbob\tred \x1b[31m \u202e\n"
    )
    capsys.readouterr()
    give(graded, "--query", query_id, "--doc", doc_id, "--rating", "2", *ANN)
    told = capsys.readouterr().err
    assert "bob had said 1: red" in told
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_concurrent_writers_lose_no_rating(graded: Path) -> None:
    places = list(labels_of(graded / "out/rubric.qrels"))[:6]

    def say(place: tuple[str, str], who: str) -> None:
        with trecexam.open_track(graded) as track:
            track.override(*place, 2, who=who, why="together")

    threads = [threading.Thread(target=say, args=(place, f"p{n}")) for n, place in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with trecexam.open_track(graded) as track:
        assert {row[5] for row in track.override.ratings().table.rows} == {f"p{n}" for n in range(6)}


def test_withdrawing_a_rating_restores_that_of_the_grader(graded: Path) -> None:
    before = (graded / "out/rubric.qrels").read_bytes()
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    where = ["--query", query_id, "--doc", doc_id]
    rating = (labels_of(graded / "out/rubric.qrels")[query_id, doc_id] + 1) % 6
    give(graded, *where, "--rating", str(rating), *ANN)
    run(["watch", str(graded), "--once"])
    assert (graded / "out/rubric.qrels").read_bytes() != before
    give(graded, *where, "--withdraw", "--who", "ann", "--why", "my mistake")
    run(["watch", str(graded), "--once"])
    assert (graded / "out/rubric.qrels").read_bytes() == before
    assert human_states(graded) == [("ann", "replaced"), ("ann", "withdrawn")]


def test_a_rating_of_a_text_that_changed_since_is_rejected_with_the_reason(graded: Path) -> None:
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    give(graded, "--query", query_id, "--doc", doc_id, "--rating", "5", *ANN)
    passages = graded / "passages.jsonl"
    number = int(doc_id.rsplit("d", 1)[1])
    old = f'"passage {number} about {query_id}"'
    assert old in passages.read_text()
    passages.write_text(passages.read_text().replace(old, '"something else altogether"'))
    assert run(["watch", str(graded), "--once"]) == 1
    assert "overrides.tsv\t2\tann's rating of" in (graded / "out/rejected.tsv").read_text()
    assert human_states(graded) == [("ann", "refused")]


def test_a_rating_of_an_item_that_was_edited_since_is_rejected(graded: Path) -> None:
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    give(graded, "--query", query_id, "--doc", doc_id, "--item", "1", "--rating", "5", *ANN)
    bank = graded / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace(f"question 0 of {query_id}?", "a better one?"))
    assert run(["watch", str(graded), "--once"]) == 1
    assert "another wording of item" in (graded / "out/rejected.tsv").read_text()


def test_a_bad_line_of_overrides_is_reported_and_the_rest_counts(graded: Path) -> None:
    (query_id, doc_id), machine = next(iter(labels_of(graded / "out/rubric.qrels").items()))
    rating = (machine + 1) % 6
    (graded / "overrides.tsv").write_text(
        "query_id\tdoc_id\titem_id\trating\twho\twhy\n"
        f"{query_id}\t{doc_id}\t\t9\tann\ttoo much\n"
        f"nope\t{doc_id}\t\t1\tann\tno such query\n"
        f"{query_id}\t{doc_id}\tnope\t1\tann\tno such item\n"
        f"{query_id}\telsewhere\t\t1\tann\tnot pooled\n"
        f"{query_id}\t{doc_id}\t\t{rating}\tann\tgood\n"
    )
    assert run(["watch", str(graded), "--once"]) == 1
    assert labels_of(graded / "out/rubric.qrels")[query_id, doc_id] == rating
    rejected = [line.split("\t")[:2] for line in (graded / "out/rejected.tsv").read_text().splitlines()[1:]]
    assert rejected == [["overrides.tsv", "2"], ["overrides.tsv", "3"], ["overrides.tsv", "4"]]
    assert human_states(graded)[-2:] == [("ann", "not pooled"), ("ann", "counts")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"q1\tq1-d01\t\t1\tann\ta\0b", "a NUL byte"),
        (b"q1\tq1-d01\t\t1\tann\tcaf\xe9", "not UTF-8 (byte 21)"),
    ],
)
def test_a_line_of_invalid_bytes_loses_only_itself_and_ratings_can_be_added(
    graded: Path, line: bytes, reason: str
) -> None:
    """One NUL byte removed all ratings from the scores and blocked new ones."""
    (query_id, doc_id), machine = next(iter(labels_of(graded / "out/rubric.qrels").items()))
    rating = (machine + 1) % 6
    good = f"{query_id}\t{doc_id}\t\t{rating}\tann\tgood\n".encode()
    (graded / "overrides.tsv").write_bytes(
        b"query_id\tdoc_id\titem_id\trating\twho\twhy\n" + line + b"\n" + good
    )
    assert run(["watch", str(graded), "--once"]) == 1
    assert labels_of(graded / "out/rubric.qrels")[query_id, doc_id] == rating
    rejected = (graded / "out/rejected.tsv").read_text().splitlines()[1:]
    assert [row.split("\t")[:2] for row in rejected] == [["overrides.tsv", "2"]]
    assert reason in rejected[0]
    give(graded, "--query", query_id, "--doc", doc_id, "--rating", str((machine + 2) % 6), *ANN)
    assert run(["watch", str(graded), "--once"]) == 1
    assert labels_of(graded / "out/rubric.qrels")[query_id, doc_id] == (machine + 2) % 6


@pytest.mark.parametrize("field", ["who", "why"])
@pytest.mark.parametrize("control", ["\0", "\x9b", "\u202e", "\u2028", "\udc80"])
def test_a_control_character_in_a_name_or_reason_is_rejected(
    graded: Path, capsys: pytest.CaptureFixture[str], field: str, control: str
) -> None:
    said = {"who": "ann", "why": "read it", field: f"w{control}"}
    with trecexam.open_track(graded) as track, pytest.raises(TrecexamError) as caught:
        track.override("q1", "q1-d00", 1, **said)
    assert f"a control character, U+{ord(control):04X}, in 'w" in str(caught.value)
    assert str(caught.value).isprintable()
    words = [part for name, value in said.items() for part in (f"--{name}", value)]
    capsys.readouterr()
    give(graded, "--query", "q1", "--doc", "q1-d00", "--rating", "1", *words, status=2)
    assert "a control character" in capsys.readouterr().err
    assert not (graded / "overrides.tsv").exists()


@pytest.mark.parametrize(("sign", "reason"), [("\x1b", "U\\+001B"), ("\u00a0", "would be read back changed")])
def test_a_passage_whose_id_cannot_be_stored_in_overrides_is_not_rated(
    graded: Path, sign: str, reason: str
) -> None:
    write_run(graded / "runs" / "odd.run", {"q1": [f"q1{sign}d99"]})
    with trecexam.open_track(graded) as track, pytest.raises(TrecexamError, match=reason):
        track.override("q1", f"q1{sign}d99", 1, who="ann", why="b")
    assert not (graded / "overrides.tsv").exists()


def test_ratings_of_an_equal_passage_are_listed_and_can_be_withdrawn_for_it(graded: Path) -> None:
    query_id, doc_id, twin = "q1", "q1-d00", "q1-d01"
    passages = graded / "passages.jsonl"
    rows = [json.loads(line) for line in passages.read_text().splitlines()]
    texts = {row["docid"]: row["text"] for row in rows}
    for row in rows:
        if row["docid"] == twin:
            row["text"] = texts[doc_id]
    passages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with trecexam.open_track(graded) as track:
        track.override(query_id, doc_id, 5, who="ann", why="same text")
        listed = [(row[1], row[3], row[5], row[8]) for row in track.override.ratings().table.rows]
        done = track.override(query_id, twin, None, who="bob", why="not so")
        after = [(row[1], row[3], row[8]) for row in track.override.ratings().table.rows]
    assert listed == [(doc_id, 5, "ann", "counts"), (twin, 5, "ann", "counts")]
    assert done.before is not None
    assert (done.before.who, done.before.rating) == ("ann", 5)
    assert after == [(doc_id, 5, "replaced"), (twin, None, "withdrawn")]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--query", "q9", "--doc", "q1-d00", "--rating", "1", *ANN], "no query 'q9' in the bank"),
        (["--query", "q1", "--doc", "q1-d0x", "--rating", "1", *ANN], "'q1-d0x' is not in the pool"),
        (["--query", "q1", "--doc", "q1-d00", "--item", "9", "--rating", "1", *ANN], "has no item '9'"),
        (["--query", "q1", "--doc", "q1-d00", "--rating", "1", "--who", "ann"], "give --why"),
        (["--query", "q1", "--doc", "q1-d00", *ANN], "--rating or --withdraw"),
        (["--query", "q1", "--doc", "q1-d00", "--rating", "1", "--withdraw", *ANN], "give either"),
        (["--query", "q1", "--doc", "q1-d00", "--rating", "1", "--who", " ", "--why", "x"], "needs a name"),
        (["--query", "q1", "--doc", "q1-d00", "--withdraw", *ANN], "no rating to withdraw"),
        ([], "give --query, --doc, --who, --why"),
    ],
)
def test_invalid_ratings_are_a_one_line_error_and_nothing_is_written(
    graded: Path, capsys: pytest.CaptureFixture[str], args: list[str], says: str
) -> None:
    capsys.readouterr()
    give(graded, *args, status=2)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert says in told
    assert not (graded / "overrides.tsv").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'"query_id"\t"doc_id"\t"rating"\t"who"\t"why"\r\n', ":1: the header line lacks query_id"),
        (b"query_id,doc_id,item_id,rating,who,why\n", ":1: the header line lacks query_id"),
        (b"query_id\tdoc_id\trating\n", ":1: the header line lacks who, why"),
        (b"query_id\tdoc_id\trating\twho\twhy\0\nq1\tq1-d00\t1\tann\tb\n", ":1: a NUL byte"),
        (b"\xff\xfe junk", "overrides.tsv:1: "),
        (b"query_id\tdoc_id\trating\twho\twhy\rq1\tq1-d00\t1\tann\tread\r", "CR alone"),
    ],
)
def test_nothing_is_added_to_a_file_whose_lines_would_not_count(
    graded: Path, capsys: pytest.CaptureFixture[str], content: bytes, says: str
) -> None:
    """It printed "1 (ann) in place of the grader's", and wrote an empty line, or one that is never read."""
    (graded / "overrides.tsv").write_bytes(content)
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    capsys.readouterr()
    give(graded, "--query", query_id, "--doc", doc_id, "--rating", "1", *ANN, status=2)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert says in told
    assert (graded / "overrides.tsv").read_bytes() == content


def test_a_broken_symlink_and_a_symlink_loop_are_reported_without_traceback(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query_id, doc_id = next(iter(labels_of(graded / "out/rubric.qrels")))
    path = graded / "overrides.tsv"
    for target, says in (("gone/overrides.tsv", "a folder that is not there"), (path.name, "cannot be read")):
        path.symlink_to(target)
        (graded / "queries.tsv").touch()
        said = printed(capsys, "watch", graded, "--once", status=1).err
        assert "overrides.tsv: is a link to a file that is not there" in said
        give(graded, "--query", query_id, "--doc", doc_id, "--rating", "1", *ANN, status=2)
        assert says in capsys.readouterr().err
        assert path.is_symlink()
        assert not (graded / "gone").exists()
        path.unlink()


def test_a_cell_rating_that_does_not_change_the_label_does_not_count_as_human_label(
    graded: Path, tmp_path: Path
) -> None:
    kept = (graded / "aside.qrels").read_text().splitlines(keepends=True)
    with trecexam.open_track(graded) as track:
        holes = {tuple(line.split()[::2]) for line in kept}
        grades = [g for g in track.grades() if (g["query_id"], g["doc_id"]) in holes]
        by_doc: dict[tuple[str, str], list[int]] = {}
        for g in grades:
            by_doc.setdefault((g["query_id"], g["doc_id"]), []).append(g["rating"])
        low = next(g for g in grades if g["rating"] < max(by_doc[g["query_id"], g["doc_id"]]))
        place = low["query_id"], low["doc_id"]
        track.override(*place, low["rating"], item=low["item_id"], who="bob", why="I agree")
    official = tmp_path / "official.qrels"
    official.write_text("".join(line for line in kept if tuple(line.split()[::2]) != place))
    merged = tmp_path / "merged.qrels"
    assert run(["fill", str(graded), "--qrels", str(official), "-o", str(merged), "--map", "identity"]) == 0
    header, *_, last = merged.with_name("merged.qrels.sources.tsv").read_text().splitlines()
    found = dict(zip(header.split("\t"), last.split("\t"), strict=False))
    assert (found["doc_id"], found["source"], found.get("who", "")) == (place[1], "model", "")
