"""A declared feature has its files in out/ and its report section without other registration."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.feature import Feature
from trecexam.grades.graded_track import GradedTrack
from trecexam.outputs import outputs
from trecexam.results.page.page import Page
from trecexam.results.result import Tables
from trecexam.results.table import Table


@pytest.mark.usefixtures("with_report")
def test_a_declared_feature_is_in_the_outputs_and_the_report(
    small_track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(track: GradedTrack) -> bytes:
        return "\n".join(track.runs).encode()

    def add(track: GradedTrack, page: Page) -> None:
        names = Tables(
            {"names": Table(("name",), (("<b>",), *((run,) for run in track.runs)))}, ("not `all`",)
        )
        page.add("names", names, title="Names of runs", lead="By <i>", files=("names.txt",), link="Names")
        page.add("holes", names)

    feature = Feature({"names.txt": ("The runs' names.", files)}, add)
    declared = (*outputs.features(), feature)
    monkeypatch.setattr(outputs, "features", lambda: declared)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
        runs = list(track.files.runs())
    page = (small_track / "out" / "report.html").read_text()
    note = '<p class="note">not <code>all</code></p>'
    first = '<tr><th scope="row" class="name"><bdi>&lt;b&gt;</bdi></th></tr>'
    head = '<h2 id="names-section">Names of runs</h2>'
    assert (small_track / "out" / "names.txt").read_text().split() == runs
    assert '<li><a href="#names-section">Names</a></li>' in page
    holes = page[page.index('<h2 id="holes-section"') : page.index(head)]
    section = page[page.index(head) : page.index("</section>", page.index(head))]
    assert (holes.count(note), holes.count(first)) == (1, 1), (
        "a part of a section that another feature begins"
    )
    for said in ('<p class="lead">By &lt;i&gt;</p>', note, first, '<a href="names.txt">names.txt</a>'):
        assert said in section


def test_no_two_features_declare_the_same_file_or_plot() -> None:
    names = [name for feature in outputs.features() for name in feature.files]
    plots = [name for feature in outputs.features() for name in (*feature.plots, *feature.joint_plots)]
    assert len(names) == len(set(names))
    assert len(plots) == len(set(plots))
