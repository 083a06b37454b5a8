"""What TREC's generation tracks and AutoJudge hand out: topics, reports, nugget banks, leaderboards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from outside import outside

import converters
from converters import Query


def put(path: Path, *rows: Any) -> Path:
    """A JSONL file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("key", ["request_id", "topic_id", "narrative_id", "query_id"])
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"title": "leaves", "problem_statement": "Why red?", "background": "A child"}, "leaves. Why red?"),
        ({"title": "Why red?", "problem_statement": "A tree."}, "Why red? A tree."),
        ({"title": "leaves"}, "leaves"),
        ({"problem_statement": "Why red?", "background": "A child"}, "Why red?"),
        ({"narrative": "How do leaves fall?"}, "How do leaves fall?"),
        ({"text": "leaves", "problem_statement": "Why red?"}, "leaves"),
    ],
)
def test_topics_of_every_track_are_queries(
    tmp_path: Path, key: str, fields: dict[str, str], text: str
) -> None:
    path = put(tmp_path / "t.jsonl", {key: "7", **fields})
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == [Query("7", text)]


def test_topics_under_one_key_are_a_list(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": [{"id": "116", "topic": "x", "question": "Is it?"}]}, indent=1))
    assert converters.sniff(path) == "queries"
    assert list(converters.read(path)) == [Query("116", "Is it?")]


def test_the_topics_of_autojudge_are_read() -> None:
    queries = list(converters.read(outside("autojudge/kiddie/topics/kiddie-topics.jsonl")))
    assert [query.query_id for query in queries] == ["leaf", "cloud", "bee", "earthworms", "hibernation"]
    assert queries[0].text.startswith("fall leaf color change chlorophyll. My 5-year-old keeps")
