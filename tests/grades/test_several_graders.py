"""Several graders in one track: each works as if alone, and what they share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import HashGrader, make_small_track

import trecexam
from trecexam.errors import ConfigError
from trecexam.folder import TrackFolder
from trecexam.grades.open_track import OpenTrack

TWO = """
[graders.rubric]

[graders.other]
kind = "rubric"
min_rating = 2
depth = 4
"""


def with_sections(root: Path, sections: str = TWO, shared: str | None = None) -> Path:
    """The track with these sections after its settings, or after `shared`."""
    path = root / "trecexam.toml"
    path.write_text((path.read_text() if shared is None else shared) + sections)
    return root


@pytest.fixture
def two(small_track: Path) -> Path:
    return with_sections(small_track)


@pytest.fixture
def track(two: Path) -> Iterator[trecexam.Track]:
    graders = {"rubric": HashGrader(), "other": HashGrader(version=2)}
    with trecexam.open_track(two, graders=graders) as opened:
        yield opened


def test_each_grader_gives_the_same_results_as_alone(track: trecexam.Track, tmp_path: Path) -> None:
    assert track.graders == ("rubric", "other")
    for name, settings in (
        ("rubric", "[track]\ndepth = 8\n"),
        ("other", "[track]\ndepth = 4\n[scores]\nmin_rating = 2\n"),
    ):
        alone = make_small_track(tmp_path / name)
        (alone / "trecexam.toml").write_text(settings)
        grader = HashGrader(version=1 if name == "rubric" else 2)
        with trecexam.open_track(alone, grader=grader) as only:
            only.grading.grade()
            track[name].grading.grade()
            assert track[name].leaderboard().rows == only.leaderboard().rows
            assert list(track[name].qrels()) == list(only.qrels())
            assert track[name].grading.counts() == only.grading.counts()
            assert track[name].folder.config.scores == only.folder.config.scores


def test_ratings_by_people_belong_to_one_grader(track: trecexam.Track, two: Path) -> None:
    query_id, doc_id = next((row.query_id, row.doc_id) for row in track["other"].export.pool())
    for name in track.graders:
        track[name].grading.grade()
    track["other"].override(query_id, doc_id, rating=5, item=1, who="ann", why="it does")
    assert (two / "overrides.other.tsv").exists()
    assert not (two / "overrides.tsv").exists()
    assert track["other"].override.summary()["cells"] == 1
    assert track["rubric"].override.summary()["cells"] == 0
    track["rubric"].override(query_id, doc_id, rating=1, item=1, who="bo", why="it does not")
    assert (two / "overrides.tsv").exists()
    assert track["other"].override.summary()["who"] == ["ann"]
    with_sections(two, '\n[graders.third]\nkind = "rubric"\npeople = "other"\n')
    graders = {name: HashGrader(version=n) for n, name in enumerate(("rubric", "other", "third"))}
    with trecexam.open_track(two, graders=graders) as opened:
        assert opened["third"].override.summary()["who"] == ["ann"]


def test_nothing_is_graded_again_when_the_grader_becomes_one_of_several(small_track: Path) -> None:
    grader = HashGrader()
    with trecexam.open_track(small_track, grader=grader) as track:
        assert track.update().graded
    before = {p.name: p.read_bytes() for p in (small_track / "out").iterdir() if p.is_file()}
    with_sections(small_track)
    with trecexam.open_track(
        small_track, graders={"rubric": grader, "other": HashGrader(version=2)}
    ) as track:
        assert track["rubric"].grading.grade().cells == 0
        assert track["rubric"].folder.out == small_track / "out"
        assert track["other"].folder.out == small_track / "out" / "other"
        assert track["rubric"].grading.counts().missing == 0
        assert track["other"].grading.counts().missing > 0
    assert before == {p.name: p.read_bytes() for p in (small_track / "out").iterdir() if p.is_file()}


@pytest.mark.parametrize(
    ("sections", "line", "reason"),
    [
        ('[graders.mini]\nkind = "rubrik"\n', 2, "did you mean 'rubric'?"),
        (
            '[graders.rubric]\n[graders.b]\nkind = "rubric"\npeople = "rubrik"\n',
            4,
            "no such grader; did you mean 'rubric'?",
        ),
        (
            '[graders.rubric]\n[graders.umbrela]\nname = "seq2seq"\npeople = "rubric"\n',
            4,
            "that one grades rubric, this one relevance",
        ),
    ],
)
def test_a_grader_section_without_a_valid_kind_is_rejected_with_its_line(
    small_track: Path, sections: str, line: int, reason: str
) -> None:
    with_sections(small_track, sections, shared="")
    with pytest.raises(ConfigError) as caught, trecexam.open_track(small_track) as track:
        [track[name].grading.counts() for name in track.graders]
    assert reason in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(str(small_track / "trecexam.toml"))


def test_the_kind_follows_from_the_name_or_the_prompt(small_track: Path) -> None:
    mine = small_track / "mine.toml"
    mine.write_text('template = "Does {context} answer {query}? {question}"\n')
    with_sections(
        small_track,
        '[grader]\nname = "openai"\nmodel = "m"\nbase_url = "http://localhost:9/v1"\n'
        '[graders.rubric]\n[graders.nuggets]\n[graders.umbrela]\n[graders.a]\nprompt = "Thomas"\n'
        '[graders.b]\nprompt = "mine.toml"\n[graders.c]\nprompt = "NuggetSelfRatedPrompt"\n',
        shared="",
    )
    with OpenTrack(TrackFolder.open(small_track)) as loaders:
        kinds = {name: loader.kind.name for name, loader in loaders.items()}
        prompts = {name: loader.config.grader.prompt for name, loader in loaders.items()}
        assert loaders["nuggets"].config.track.unit == "response"
    assert [*kinds.values()] == ["rubric", "nuggets", "relevance", "relevance", "rubric", "rubric"]
    assert (prompts["nuggets"], prompts["umbrela"], prompts["a"]) == ("NuggetAssign", "UMBRELA", "Thomas")


def test_graders_with_the_same_prompts_share_grades_in_any_order(small_track: Path) -> None:
    with_sections(small_track, '\n[graders.a]\nkind = "rubric"\ndepth = 4\n[graders.b]\nkind = "rubric"\n')
    given = {"a": HashGrader(), "b": HashGrader()}
    with trecexam.open_track(small_track, graders=given) as track:
        assert track["b"].grading.counts().missing == 144
        graded = track["a"].grading.grade().cells
        assert graded
        assert track["b"].grading.counts().missing == 144 - graded
        track["b"].grading.grade()
        assert len(given["a"].asked) + len(given["b"].asked) == 144
        assert track["a"].grading.counts().missing == track["b"].grading.counts().missing == 0


def test_a_prompt_for_another_kind_of_item_is_rejected(small_track: Path) -> None:
    with_sections(
        small_track,
        '[grader]\nname = "openai"\nmodel = "m"\nbase_url = "http://localhost:9/v1"\n'
        '[graders.rubric]\n[graders.nuggets]\nprompt = "UMBRELA"\n',
        shared="",
    )
    with OpenTrack(TrackFolder.open(small_track)) as loaders:
        unable = loaders.load().unable
    assert set(unable) == {"nuggets"}
    assert "of the kind nuggets, which asks about nugget, and its grader asks about query" in str(
        unable["nuggets"]
    )


def test_ratings_of_people_that_belong_to_no_grader_are_reported(small_track: Path) -> None:
    with_sections(small_track, '\n[graders.a]\nkind = "rubric"\n[graders.b]\nkind = "rubric"\ndepth = 2\n')
    (small_track / "overrides.tsv").write_text("whatever\n")
    (small_track / "overrides.b.tsv").write_text("whatever\n")
    given = {"a": HashGrader(), "b": HashGrader(version=2)}
    with trecexam.open_track(small_track, graders=given) as track:
        rows = {row.file: row.reason for row in track.files.rejected()}
        assert "those of this track take overrides.a.tsv, overrides.b.tsv" in rows["overrides.tsv"]
        assert rows["overrides.b.tsv"].startswith("b: ")
        assert "overrides.tsv" not in {row.file for row in track["a"].files.rejected()}
