"""Damaged or malicious packs are rejected before anything is unpacked."""

from __future__ import annotations

import json
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packs import forged, jsonl, lines_of, parts_of
from support import HashGrader, make_small_track

import trecexam
from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.pack.reproducing import reproduce


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    root = make_small_track(folder / "track", queries=1, docs=3, items=2)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        track.pack(folder / "good.trecexam")
    return folder / "good.trecexam"


def refuses(pack: Path, tmp_path: Path, reason: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TrecexamError, match=reason):
        reproduce(pack, tmp_path / "again")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name",
    [
        *("../escape", "track/../../escape", "/etc/passwd", "track//x", "track/.trecexam/lock", "track\\x"),
        *("x\n", "track/" + "d/" * 40 + "x", "track/" + "x" * 999, "track/", "C:\\x"),
    ],
)
def test_a_name_that_leads_outside_the_folder_is_rejected(good: Path, tmp_path: Path, name: str) -> None:
    refuses(
        forged(good, tmp_path / "p", {name: b"x"}), tmp_path, "points outside of the pack, or is too long"
    )


def test_links_duplicates_bombs_and_other_compressions_are_rejected(good: Path, tmp_path: Path) -> None:
    parts, pack = parts_of(good), tmp_path / "p"

    def with_more(info: zipfile.ZipInfo, content: bytes = b"x") -> Path:
        with zipfile.ZipFile(pack, "w") as file:
            for name, part in parts.items():
                file.writestr(name, part)
            file.writestr(info, content)
        return pack

    link = zipfile.ZipInfo("track/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    refuses(with_more(link, b"/etc/passwd"), tmp_path, "a link or a device")
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = with_more(zipfile.ZipInfo("answers.jsonl"))
    refuses(twice, tmp_path, "it contains a part twice")
    packed = zipfile.ZipInfo("track/x")
    packed.compress_type = zipfile.ZIP_LZMA
    refuses(with_more(packed), tmp_path, "in another way than by deflate")
    bomb = zipfile.ZipInfo("track/bomb")
    bomb.compress_type = zipfile.ZIP_DEFLATED
    refuses(with_more(bomb, bytes(2**27)), tmp_path, "it would unpack")
    refuses(forged(good, pack, {"evil.py": b"x"}), tmp_path, "a pack has no part called 'evil.py'")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ('[track]\npassages = "../../etc/passwd"', "`passages` in .track. names '../../etc/passwd'"),
        ('[track]\nruns = "/tmp"', "`runs` in .track."),
        ('[track]\nbank = ["/x/*"]', "`bank` in .track."),
        ('[graders.rubric]\nprompt = "../p.toml"', "`prompt` in .graders.rubric."),
        ('[grader]\nname = "recorded"\nrecorded = "/dev/zero"', "`recorded` in .grader."),
        ('[track]\ndataset = "msmarco-passage/train"', "would be downloaded"),
        ("[tracks]", "tracks"),
        ("[[[", "trecexam.toml"),
    ],
)
def test_settings_that_read_files_outside_the_pack_are_rejected(
    good: Path, tmp_path: Path, settings: str, reason: str
) -> None:
    pack = forged(good, tmp_path / "p", {"track/trecexam.toml": settings.encode()})
    refuses(pack, tmp_path, reason)


def test_code_and_templates_of_a_pack_do_not_run(good: Path, tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef score(output, golds): return 1.0\n".encode()
    for settings, reason in (
        ('[grader]\nname = "erag"\nmetric = "evil:score"', "is code, and did not run"),
        ('[grader]\nname = "openai"\nprompt = "p.jinja"', "p.jinja"),
    ):
        template = b"{{ question }} {{ context }} {{ ''.__class__.__mro__ }}"
        files = {"track/evil.py": code, "track/p.jinja": template, "track/trecexam.toml": settings.encode()}
        pack = forged(good, tmp_path / "p", files)
        refuses(pack, tmp_path, reason)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"passage": "zz"}, "passage String should match"),
        ({"rating": 6}, "rating"),
        ({"rating": None}, "does not go with its status"),
        ({"by": "0" * 64}, "names nobody"),
        ({"extra": 1}, "extra"),
        ({"answer": 5}, "answer"),
        ({"probabilities": "all"}, "probabilities"),
    ],
)
def test_a_line_that_is_not_an_answer_is_reported(
    good: Path, tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    rows = lines_of(good, "answers.jsonl")
    rows[1] |= changed
    refuses(forged(good, tmp_path / "p", {"answers.jsonl": jsonl(rows)}), tmp_path, reason)


def test_inconsistent_packs_are_rejected(good: Path, tmp_path: Path) -> None:
    rows, (source,) = lines_of(good, "answers.jsonl"), lines_of(good, "graders.jsonl")
    lies: list[tuple[dict[str, bytes | None], dict[str, Any], str]] = [
        ({"answers.jsonl": jsonl([*rows, rows[0]])}, {}, "two answers to one cell"),
        ({"graders.jsonl": jsonl([{**source, "identity": {"grader": "me"}}])}, {}, "is not the digest"),
        ({"graders.jsonl": None, "answers.jsonl": None}, {}, "names no grader"),
        ({"answers.jsonl": b"[" * 100_000}, {}, "line 1 of answers.jsonl"),
        ({"manifest.json": b"[" * 100_000}, {}, "is not a pack, or is damaged"),
        ({}, {"texts_at": ["../p"]}, "names a file outside of the pack"),
        ({}, {"texts_at": [str(n) for n in range(9)]}, "texts_at"),
        (
            {"texts.jsonl": jsonl([{"docid": str(n)} for n in range(99)])},
            {"min_text": 2**20},
            "replaces its texts",
        ),
        ({}, {"outputs": {"/etc/passwd": "0" * 64}}, "names a file outside of the pack"),
        ({}, {"schema": 2}, "a pack of schema 2, known here: 1"),
        ({}, {"parts": {}}, "its parts are not those"),
        ({"track/trecexam.toml": None}, {}, "trecexam.toml"),
    ]
    for changed, about, reason in lies:
        if "manifest.json" in changed:
            pack = tmp_path / "p"
            with zipfile.ZipFile(pack, "w") as file:
                file.writestr("manifest.json", changed["manifest.json"] or b"")
        else:
            pack = forged(good, tmp_path / "p", changed, **about)
        refuses(pack, tmp_path, reason)


@given(st.data())
def test_a_modified_pack_is_rejected_or_reproduced(good: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(good.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        cut = data.draw(st.integers(0, 9))
        content[at : at + cut] = data.draw(st.binary(max_size=9))
    (tmp_path / "p").write_bytes(content)
    refused_or_reproduced(tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_a_pack_with_modified_records_is_rejected_or_reproduced(
    good: Path, tmp_path: Path, data: st.DataObject
) -> None:
    part = data.draw(st.sampled_from(["answers", "graders", "assessments", "texts", "manifest"]))
    if part == "manifest":
        manifest = json.loads(parts_of(good)["manifest.json"])
        key = data.draw(st.sampled_from(sorted(manifest.keys() - {"parts"})))
        forged(good, tmp_path / "p", {}, **{key: data.draw(json_values)})
    else:
        rows = lines_of(good, f"{part}.jsonl")
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.sampled_from([*row, "new"]))] = data.draw(json_values)
        forged(good, tmp_path / "p", {f"{part}.jsonl": jsonl(rows)})
    refused_or_reproduced(tmp_path)


def refused_or_reproduced(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "again", ignore_errors=True)
    try:
        reproduce(tmp_path / "p", tmp_path / "again")
    except (TrecexamError, ConversionError):
        pass
    else:
        assert (tmp_path / "again" / "out" / "manifest.json").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"p", "again"}
