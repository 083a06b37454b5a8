from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from support import HashGrader, make_small_track

import trecexam
from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError
from converters.records import Item
from trecexam.errors import ItemConflictError, LockedError, TrecexamError
from trecexam.extensions.banks.editing import items_to_edit
from trecexam.files.track_lock import track_lock
from trecexam.inputs.overrides import digest_of

BANK = "bank.questions.jsonl"


def texts(root: Path) -> dict[str, str]:
    return {item.item_id: item.text for item in read_bank(root / BANK)}


def edits_of(track: trecexam.track.Track, item_id: str) -> tuple[dict[str, Any], ...]:
    return next(one.edits for one in items_to_edit(track.folder, "q1") if one.item.item_id == item_id)


def test_an_edit_regrades_only_that_item(small_track: Path, hash_grader: HashGrader) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        asked = len(hash_grader.asked)
        done = track.bank.edit_item("q1/2", "another question?", who="Ann")
        assert (done.item.text, done.file, done.written) == ("another question?", small_track / BANK, True)
        track.update()
        new = hash_grader.asked[asked:]
        pooled = {cell.doc_id for cell in hash_grader.asked[:asked] if cell.item.query_id == "q1"}
        assert {cell.item.text for cell in new} == {"another question?"}
        assert {cell.doc_id for cell in new} == pooled
        # Restoring the text costs nothing.
        track.bank.edit_item("q1/2", "question 2 of q1?", who="Ann")
        assert track.update().graded == 0
        before = [edit["before"] for edit in edits_of(track, "q1/2")]
        assert before == ["question 2 of q1?", "another question?"]


def test_an_added_item_is_graded_for_its_query_and_a_retired_one_is_not_graded(
    small_track: Path, hash_grader: HashGrader
) -> None:
    with trecexam.open_track(small_track, grader=hash_grader) as track:
        track.update()
        asked = len(hash_grader.asked)
        done = track.bank.add_item("q2", "  is it\nnew? ", who="Ann", why="it was missing")
        assert done.item.text == "is it new?"
        track.update()
        graded = {(cell.query_id, cell.item.item_id) for cell in hash_grader.asked[asked:]}
        assert graded == {("q2", done.item.item_id)}
        items = track.status()["items"]
        track.bank.retire_item(done.item.item_id, who="Bob")
        assert track.update().graded == 0
        assert (track.status()["items"], track.status()["retired_items"]) == (items - 1, 1)
        assert track.bank.retire_item(done.item.item_id, who="Bob", retired=False).item == done.item
        assert track.update().graded == 0
        assert track.status()["items"] == items


def test_the_bank_stores_who_changed_what_when_and_why(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        track.bank.edit_item("q1/0", "new?", who=" Ann\tB ", why="clearer")
        track.bank.retire_item("q1/0", who="Bob")
        edit, retired = edits_of(track, "q1/0")
    assert (edit["who"], edit["why"], edit["before"]) == ("Ann B", "clearer", "question 0 of q1?")
    assert (retired["who"], retired["retired"]) == ("Bob", True)
    assert edit["when"] <= retired["when"]


def test_a_concurrent_change_is_not_overwritten(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        item = next(one for one in read_bank(small_track / BANK) if one.item_id == "q1/0")
        seen = digest_of(item)
        assert track.bank.edit_item("q1/0", "Ann's?", who="Ann", seen=seen).written
        before = (small_track / BANK).read_bytes()
        with pytest.raises(ItemConflictError, match=r"was changed meanwhile.*Ann's\?") as caught:
            track.bank.edit_item("q1/0", "Bob's?", who="Bob", seen=seen)
        assert caught.value.now == item._replace(text="Ann's?")
        with pytest.raises(ItemConflictError):
            track.bank.retire_item("q1/0", who="Bob", seen=seen)
        with pytest.raises(ItemConflictError, match="no longer") as gone:
            track.bank.edit_item("q1/9", "x", who="Bob", seen=seen)
        assert gone.value.now is None
        assert (small_track / BANK).read_bytes() == before
        assert track.bank.edit_item("q1/0", "Bob's?", who="Bob", seen=digest_of(caught.value.now)).written


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.bank.edit_item("q1/0", "  \n", who="Ann"), "has no text"),
        (lambda t: t.bank.edit_item("q1/0", "a\u202eb", who="Ann"), "control character, U+202E"),
        (lambda t: t.bank.add_item("q1", "a", who="Ann\u2067"), "control character, U+2067"),
        (lambda t: t.bank.retire_item("q1/0", who="Ann", why="\x1b[31m"), "control character, U+001B"),
        (lambda t: t.bank.edit_item("q1/0", "a" * 2001, who="A"), "2,001 characters, and may have 2,000"),
        (lambda t: t.bank.retire_item("q1/0", who="A", why="a" * 501), "501 characters, and may have 500"),
        (lambda t: t.bank.edit_item("q1/0", "x", who=" "), "needs a name"),
        (lambda t: t.bank.edit_item("q1/0", "question 1 of q1?", who="A"), "has this item already, 'q1/1'"),
        (
            lambda t: t.bank.edit_item("q1/00", "x", who="A"),
            "no item 'q1/00' in the bank; did you mean 'q1/0'?",
        ),
        (lambda t: t.bank.add_item("q1", "question 1 of q1?", who="A"), "has this item already, 'q1/1'"),
        (lambda t: t.bank.add_item("q11", "x", who="A"), "no query 'q11' in the track; did you mean 'q1'?"),
        (lambda t: t.bank.add_item("q1", "x", who="A", kind="essay"), "a question or a nugget"),
        (lambda t: t.bank.add_item("q1", "x", who="A", importance="so so"), "vital, okay or none"),
    ],
)
def test_invalid_edits_are_a_one_line_error(
    small_track: Path, change: Callable[[trecexam.track.Track], object], reason: str
) -> None:
    before = (small_track / BANK).read_bytes()
    with trecexam.open_track(small_track) as track, pytest.raises(TrecexamError) as caught:
        change(track)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (small_track / BANK).read_bytes() == before


def test_findings_of_bank_check_are_warnings(small_track: Path) -> None:
    with trecexam.open_track(small_track) as track:
        track.bank.edit_item("q1/0", "Query number q1", who="A")
        (first, *others) = items_to_edit(track.folder, "q1")
        assert first.warnings == ("a copy of the query",)
        assert all(one.warnings == () for one in others)


def test_a_first_item_can_be_added_to_a_query_without_items(small_track: Path) -> None:
    with (small_track / "queries.tsv").open("a") as file:
        file.write("q4\tthe fourth\n")
    with trecexam.open_track(small_track) as track:
        assert items_to_edit(track.folder, "q4") == ()
        done = track.bank.add_item("q4", "first?", who="Ann")
        assert [one.item for one in items_to_edit(track.folder, "q4")] == [done.item]
        with pytest.raises(TrecexamError, match="no query 'q5'"):
            items_to_edit(track.folder, "q5")


def test_a_bank_behind_a_symlink_keeps_link_and_mode_and_so_does_the_old_file(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    kept = tmp_path / "kept.jsonl"
    kept.write_bytes((root / BANK).read_bytes())
    kept.chmod(0o640)
    (root / BANK).unlink()
    (root / BANK).symlink_to(kept)
    before = kept.read_bytes()
    with trecexam.open_track(root) as track:
        track.bank.edit_item("q1/0", "new?", who="Ann")
    assert (root / BANK).is_symlink()
    assert next(iter(read_bank(kept))).text == "new?"
    old = root / f"{BANK}.orig"
    assert old.read_bytes() == before
    assert {path.stat().st_mode & 0o777 for path in (kept, old)} == {0o640}


def test_a_compressed_bank_is_not_edited(small_track: Path) -> None:
    packed = gzip.compress((small_track / BANK).read_bytes())
    (small_track / f"{BANK}.gz").write_bytes(packed)
    (small_track / BANK).unlink()
    with trecexam.open_track(small_track) as track:
        assert items_to_edit(track.folder, "q1")
        with pytest.raises(TrecexamError, match="is compressed, and could not be edited: unpack it"):
            track.bank.edit_item("q1/0", "new?", who="Ann")
    assert [path.name for path in small_track.glob("bank*")] == [f"{BANK}.gz"]


def test_the_item_is_added_to_the_last_file_of_its_kind(small_track: Path) -> None:
    nuggets = small_track / "bank.a-nuggets.jsonl"
    nuggets.write_text('{"qid": "q1", "nuggets": [{"text": "a fact"}]}\n')
    with trecexam.open_track(small_track) as track:
        assert track.bank.add_item("q1", "new?", who="A").file.name == BANK
        done = track.bank.add_item("q1", "another fact", who="A", kind="nugget", importance="okay")
        assert (done.file, done.item.importance) == (nuggets, "okay")
        # So is an item of a query that is new to the file.
        assert track.bank.add_item("q2", "a fact", who="A", kind="nugget").file == nuggets


def test_edits_are_rejected_while_a_model_generates_the_bank(small_track: Path) -> None:
    with (
        trecexam.open_track(small_track) as track,
        track_lock(small_track / ".trecexam" / "generate.lock", "writing this track's bank"),
        pytest.raises(LockedError, match=f"process {os.getpid()} is already writing this track's bank"),
    ):
        track.bank.edit_item("q1/0", "x", who="Ann")


def test_concurrent_writers_lose_no_edit(small_track: Path) -> None:
    def write(name: str) -> None:
        with trecexam.open_track(small_track) as track:
            for number in range(5):
                track.bank.add_item("q1", f"{name} {number}?", who=name)
                track.bank.edit_item(f"q2/{name}", f"{name} {number}!", who=name)

    names = [str(n) for n in range(4)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(write, names))
    found = texts(small_track)
    assert {f"{name} {n}?" for name in names for n in range(5)} <= set(found.values())
    assert [found[f"q2/{name}"] for name in names] == [f"{name} 4!" for name in names]
    rows = [json.loads(line) for line in (small_track / BANK).read_text().splitlines()]
    assert [
        len(row["edits"]) for row in rows if row.get("question_id", "") in {f"q2/{n}" for n in names}
    ] == [5] * 4


def track_of(root: Path, *rows: dict[str, Any] | str) -> Path:
    root.mkdir(exist_ok=True)
    (root / "queries.tsv").write_text("q1\tone\nq2\ttwo\n")
    (root / "trecexam.toml").touch()
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (root / BANK).write_text("".join(line + "\n" for line in lines))
    return root


@pytest.mark.parametrize(
    "row",
    [
        {
            "query_id": "q1",
            "qid": "a",
            "question": "Why?",
            "correct": "x",
            "choices": {"A": "x"},
            "facet_id": 3,
        },
        {"query_id": "q1", "nugget_id": "a", "nugget": "Why?", "importance": "vital", "mine": [1]},
        {"query_id": "q1", "query_text": "x", "items": [{"id": "a", "kind": "nugget", "text": "Why?"}]},
        {"query_id": "q1", "items": [{"nugget_id": "a", "nugget_text": "Why?", "weight": 2.5}]},
        {
            "query_id": "q1",
            "questions": [{"id": "a", "text": "Why?", "gold_answers": ["x"], "origin": {"text": "y"}}],
        },
        {"qid": "q1", "query": "the query", "nuggets": [{"text": "Why?", "id": "a"}, {"text": "b"}]},
        {"qid": "q1", "nuggets": [{"text": "Why?"}, {"text": "b"}, {"text": "b"}]},
        {
            "qid": "q1",
            "query": "x",
            "rubrics": [{"criterion": "Why?", "weight": 5}, {"criterion": "b", "weight": -2}],
        },
    ],
)
def test_an_item_of_every_form_is_edited_retired_and_added_to(tmp_path: Path, row: dict[str, Any]) -> None:
    root = track_of(tmp_path / "track", row, {"query_id": "q2", "question": "Other?"})
    was, *others = read_bank(root / BANK)
    texts_of_queries = [query.text for query in read_bank_queries(root / BANK)]
    with trecexam.open_track(root) as track:
        assert track.bank.edit_item(was.item_id, "How?", who="Ann").item == was._replace(text="How?")
        track.bank.retire_item(was.item_id, who="Bob", why="old")
        added = track.bank.add_item("q1", "More?", who="Ann", kind=was.kind).item
        edits = edits_of(track, was.item_id)
    found = list(read_bank(root / BANK))
    assert found == [was._replace(text="How?", retired=True), *others, added]
    assert [query.text for query in read_bank_queries(root / BANK)] == texts_of_queries
    assert [sorted(edit) for edit in edits] == [
        ["before", "when", "who"],
        ["retired", "when", "who", "why"],
    ]
    # A line of one item keeps what the person's own program put there.
    assert "mine" not in row or json.loads((root / BANK).read_text().splitlines()[0])["mine"] == [1]


def test_the_file_as_it_was_is_kept_once_until_somebody_else_writes_it(tmp_path: Path) -> None:
    root = track_of(
        tmp_path / "track", '{"query_id":"q1","questions":[{"id":"a","text":"Why?","score":1.5}]}'
    )
    first = (root / BANK).read_bytes()
    with trecexam.open_track(root) as track:
        track.bank.edit_item("a", "How?", who="Ann")
        track.bank.edit_item("a", "How so?", who="Ann")
        assert [path.name for path in sorted(root.glob("bank*"))] == [BANK, f"{BANK}.orig"]
        second = (root / BANK).read_bytes().replace(b": ", b" :  ")
        (root / BANK).write_bytes(second)
        track.bank.edit_item("a", "How then?", who="Ann")
    assert (root / f"{BANK}.orig").read_bytes() == first
    assert (root / f"{BANK}.orig1").read_bytes() == second


@pytest.mark.parametrize(
    "row",
    [
        {"query_id": "q1", "outputs": ["a", "b"]},
        {"question_id": "q1", "question": "Why?", "content": "Heat."},
        {"query_id": "q1", "items": [{"id": "a", "question_text": "Why?", "details": {"x": [1]}}]},
    ],
)
def test_what_would_not_be_read_back_is_left_to_a_person(tmp_path: Path, row: dict[str, Any]) -> None:
    root = track_of(tmp_path / "track", row)
    item, *_ = read_bank(root / BANK)
    before = (root / BANK).read_bytes()
    with trecexam.open_track(root) as track:
        with pytest.raises(ConversionError, match="edit the file by hand"):
            track.bank.edit_item(item.item_id, "c", who="Ann")
        assert (root / BANK).read_bytes() == before
        if item.kind == "gold":
            assert track.bank.retire_item(item.item_id, who="Ann").item.retired
            return
        with pytest.raises(ConversionError, match="edit the file by hand"):
            track.bank.retire_item(item.item_id, who="Ann")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"query_id": "q1"}', ":2: .*no text"),
        ("\0", ":2: "),
        ("not JSON", ":2: not valid JSON"),
        ('{"query_id": "q1", "question_id": "a", "question": "Who?"}', ":2: item id 'a' occurs twice"),
    ],
)
def test_an_unreadable_bank_is_not_changed(tmp_path: Path, line: str, reason: str) -> None:
    root = track_of(tmp_path / "track", {"query_id": "q1", "question_id": "a", "question": "Why?"}, line)
    before = (root / BANK).read_bytes()
    with trecexam.open_track(root) as track, pytest.raises(ConversionError, match=reason):
        track.bank.edit_item("a", "y", who="Ann")
    assert (root / BANK).read_bytes() == before


def _alike(item: Item, other: Item) -> bool:
    """Return whether two items of a query differ in their ids alone."""
    return (item.query_id, item.kind, item.text) == (other.query_id, other.kind, other.text)


TEXTS = st.text("ab\u00fc\"'{\\ ", min_size=1, max_size=12).filter(lambda text: text.strip() != "")


@st.composite
def banks(draw: st.DrawFn) -> list[str]:
    """The lines of a bank of several forms and ways to write JSON."""
    lines = []
    for number in range(draw(st.integers(1, 4))):
        query_id = f"q{draw(st.integers(1, 2))}"
        texts = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
        ids = [f"{query_id}/{number}/{place}" for place in range(len(texts))]
        form = draw(st.sampled_from(("questions", "items", "single", "nugget", "nuggetizer")))
        extra = draw(st.sampled_from(({}, {"weight": 2.5}, {"x": ["y"]})))
        pairs = list(zip(ids, texts, strict=True))
        row: dict[str, Any] = {"query_id": query_id, **extra}
        if form == "questions":
            row |= {"questions": [{"question_id": i, "question_text": t, **extra} for i, t in pairs]}
        elif form == "items":
            row |= {"items": [{"nugget_text": t, "nugget_id": i, **extra} for i, t in pairs]}
        elif form == "nuggetizer":
            row = {"qid": query_id, "nuggets": [{"text": f"{t}{number}", **extra} for t in texts]}
        else:
            key = "nugget" if form == "nugget" else "question"
            row |= {key: texts[0], f"{key}_id": ids[0]}
        lines.append(json.dumps(row, ensure_ascii=draw(st.booleans())))
    return lines


@given(banks(), st.data())
def test_any_sequence_of_edits_is_stored_and_changes_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject
) -> None:
    root = track_of(tmp_path_factory.mktemp("bank"), *lines)
    original = (root / BANK).read_bytes()
    model = list(read_bank(root / BANK))
    with trecexam.open_track(root) as track:
        for step in range(data.draw(st.integers(1, 5))):
            item = data.draw(st.sampled_from(model))
            what = data.draw(st.sampled_from(("edit", "retire", "add")))
            text = f"{' '.join(data.draw(TEXTS).split())} {step}."
            if what == "edit":
                track.bank.edit_item(item.item_id, text, who="Ann")
                model = [one._replace(text=text) if one == item else one for one in model]
            elif what == "retire":
                if item.retired and any(_alike(item, one) and not one.retired for one in model):
                    with pytest.raises(TrecexamError, match="has this item already"):
                        track.bank.retire_item(item.item_id, who="Ann", retired=False)
                    continue
                track.bank.retire_item(item.item_id, who="Ann", retired=not item.retired)
                model = [one._replace(retired=not item.retired) if one == item else one for one in model]
            else:
                added = track.bank.add_item(item.query_id, text, who="Ann", kind=item.kind).item
                assert added == Item(item.query_id, added.item_id, text, item.kind)
                found = list(read_bank(root / BANK))
                assert [one for one in found if one != added] == model
                alike = [one for one in found if one.query_id == added.query_id]
                assert alike[-1] == added
                model = found
            assert list(read_bank(root / BANK)) == model
    kept = root / f"{BANK}.orig"
    assert not kept.exists() or kept.read_bytes() == original
    assert not (root / f"{BANK}.orig1").exists()


@pytest.mark.parametrize(
    "name", ["dl19/bank.questions.jsonl.gz", "car-y3/*.jsonl*", "rag25/*nuggets*.jsonl*"]
)
def test_published_banks_can_be_edited(tmp_path: Path, name: str) -> None:
    content = outside(name).read_bytes()
    root = track_of(tmp_path / "track")
    (root / BANK).write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
    items = list(read_bank(root / BANK))
    with trecexam.open_track(root) as track:
        for place in (0, len(items) // 2, len(items) - 1):
            items[place] = track.bank.edit_item(
                items[place].item_id, f"Is this \u00e9dited {place}?", who="A"
            ).item
    assert list(read_bank(root / BANK)) == items
