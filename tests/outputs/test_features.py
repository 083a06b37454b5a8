"""A declared feature has its files in out/ and its report section without other registration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.outputs import outputs
from trecexam.tables.result import Tables
from trecexam.tables.section import ReportPart
from trecexam.tables.table import Table


@pytest.mark.usefixtures("with_report")
def test_a_declared_feature_is_in_the_outputs_and_the_report(
    small_track: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(track: Assessment) -> Mapping[str, bytes]:
        return {"names.txt": "\n".join(track.runs).encode()}

    def report(track: Assessment) -> tuple[ReportPart, ...]:
        names = Tables(
            {"names": Table(("name",), (("<b>",), *((run,) for run in track.runs)))}, ("not `all`",)
        )
        return (
            ReportPart("names", names, "Names of runs", "By <i>", files=("names.txt",), link="Names"),
            ReportPart("holes", names),
        )

    feature = Feature((OutputFiles({"names.txt": "The runs' names."}, files),), report)
    declared = (*outputs.features(), feature)
    monkeypatch.setattr(outputs, "features", lambda: declared)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
        runs = list(track.files.runs())
    page = (small_track / "out" / "report.html").read_text()
    note = '<p class="note">not <code>all</code></p>'
    first = '<tr><td class="name"><bdi>&lt;b&gt;</bdi></td></tr>'
    head = '<h2 id="names-section">Names of runs</h2>'
    assert (small_track / "out" / "names.txt").read_text().split() == runs
    assert '<li><a href="#holes-section">Holes</a></li>\n<li><a href="#names-section">Names</a></li>' in page
    holes = page[page.index('<h2 id="holes-section"') : page.index(head)]
    section = page[page.index(head) : page.index("</section>", page.index(head))]
    assert (holes.count(note), holes.count(first)) == (1, 1), (
        "a part of a section that another feature begins"
    )
    said = ['<p class="lead">By &lt;i&gt;</p>', note, first, '<a href="names.txt">names.txt</a>']
    assert sorted(said, key=section.index) == said


def test_no_two_features_declare_the_same_file_or_plot() -> None:
    names = [name for feature in outputs.features() for group in feature.files for name in group.names]
    plots = [name for feature in outputs.features() for name in feature.plots]
    assert len(names) == len(set(names))
    assert len(plots) == len(set(plots))
