"""Weighted precision and recall of support, against explicit sums."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trecexam
from trecexam.extensions.support.tables import SupportTables
from trecexam.folder import TrackFolder
from trecexam.grades.cited import cited_values
from trecexam.grades.open_track import OpenTrack
from trecexam.scores.measures import measure
from trecexam.scores.support import support_scores

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0])


def test_a_response_of_four_sentences_has_the_scores_of_the_definition() -> None:
    # Full, partial, none, and a sentence without citations.
    precision, recall, f1 = support_scores([(1.0,), (0.5,), (0.0,), ()])
    assert (precision, recall) == (1.5 / 3, 1.5 / 4)
    assert f1 == pytest.approx(2 * 0.5 * 0.375 / 0.875)


def test_each_citation_counts_for_precision_and_the_best_one_for_recall() -> None:
    assert support_scores([(0.5, 1.0, 0.0), ()])[:2] == (0.5, 0.5)


def test_without_citations_or_sentences_all_scores_are_0() -> None:
    assert support_scores([(), ()]) == (0, 0, 0)
    assert support_scores([]) == (0, 0, 0)


def test_the_measures_have_names_and_are_not_official_measures() -> None:
    assert [str(measure(name)) for name in ("SupportP", "SupportR", "SupportF1")] == [
        "SupportP",
        "SupportR",
        "SupportF1",
    ]
    with pytest.raises(ValueError, match="official judgments do not have"):
        measure("SupportP", official=True)
    with pytest.raises(ValueError, match="takes no parameters"):
        measure("SupportP@5")
    with pytest.raises(ValueError, match="did you mean SupportF1"):
        measure("SupportF")


REFERENCES = ["a", "b", "c"]
CITATIONS = st.lists(st.integers(-2, 4) | st.sampled_from([*REFERENCES, "elsewhere"]), max_size=5)
ANSWERS = st.lists(
    st.tuples(st.sampled_from(["One.", "Two two.", "  ", "\u200f\u0645."]), CITATIONS), max_size=7
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    ANSWERS,
    st.dictionaries(
        st.tuples(st.integers(1, 7), st.sampled_from([*REFERENCES, "elsewhere"])), st.integers(0, 2)
    ),
    st.sampled_from(["first", "all"]),
)
def test_scores_of_any_response_equal_the_definition_on_its_json(
    tmp_path: Path, answer: list[Any], labels: dict[tuple[int, str], int], citations: Literal["first", "all"]
) -> None:
    # An additional sentence, so that there is text.
    answer = [*answer, ("Last.", [0])]
    row = {"run_id": "r", "topic_id": "q", "references": REFERENCES}
    row["answer"] = [{"text": text, "citations": cited} for text, cited in answer]
    labels = labels | {(len(answer), "a"): 1}
    root = tmp_path / "track"
    # The labels of a file are stored: those of another response do not count here.
    shutil.rmtree(root, ignore_errors=True)
    (root / "runs").mkdir(parents=True)
    (root / "runs" / "r.jsonl").write_text(json.dumps(row) + "\n")
    (root / "queries.tsv").write_text("q\ta question\nnot answered\tanother one\n")
    (root / "trecexam.toml").write_text(
        f'[graders.support]\nname = "recorded"\nrecorded = "labels.tsv"\ncitations = "{citations}"\n'
    )
    names = ("no_support", "partial_support", "full_support")
    lines = (f"r\tq\t{place}\t{doc}\t{names[rating]}\n" for (place, doc), rating in labels.items())
    (root / "labels.tsv").write_text("run\tquery_id\tsentence\tdoc_id\tlabel\n" + "".join(lines))
    with trecexam.open_track(root) as opened:
        opened.grading.grade()
    with OpenTrack(TrackFolder.open(root)) as loaders:
        loader = loaders.first
        track = loader.load()
        values = cited_values(track, ["r"], ["q", "not answered"])
        table = SupportTables(track).labels()

    #: A duplicate sentence has one label per passage: that of its first citation.
    label_of: dict[tuple[str, str], int] = {}
    cited_weights, sentence_weights, uncited = [], [], 0
    for place, (text, cited) in enumerate(answer, 1):
        if not text.strip():
            continue
        in_range = [
            c if isinstance(c, str) else REFERENCES[c] for c in cited if isinstance(c, str) or 0 <= c < 3
        ]
        outside = len([c for c in cited if not isinstance(c, str) and not 0 <= c < 3])
        looked_at = sorted(set(in_range), key=in_range.index)
        for doc_id in looked_at[:1] if citations == "first" else looked_at:
            label_of.setdefault((text.strip(), doc_id), labels.get((place, doc_id), 0))
        weights = [label_of.get((text.strip(), doc_id), 0) / 2 for doc_id in looked_at] + [0.0] * outside
        weights = weights[:1] if citations == "first" else weights
        cited_weights += weights
        sentence_weights.append(max([0.0, *weights]))
        uncited += not cited
    precision = sum(cited_weights) / len(cited_weights)
    recall = sum(sentence_weights) / len(sentence_weights)
    both = precision + recall
    assert values[0, 0] == pytest.approx([precision, recall, 2 * precision * recall / both if both else 0])
    assert not values[0, 1].any()
    assert sum(row[4] == "uncited" for row in table.rows) == uncited
