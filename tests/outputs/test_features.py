"""A feature that declares itself has its files in out/ and its part of the report; nothing else names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support import HashGrader

import trecexam
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import Feature, OutputFiles
from trecexam.outputs import outputs
from trecexam.tables.section import FeatureReport, ReportPart


def test_a_feature_is_in_the_outputs_and_in_the_report_by_what_it_declares(
    small_track: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    html = tmp_path / "section.html"
    html.write_text('<p class="note">{{ names|join(", ") }}</p>\n')

    def files(track: Assessment) -> Mapping[str, bytes]:
        return {"names.txt": "\n".join(track.runs).encode()}

    def report(track: Assessment) -> FeatureReport:
        names = {"names": ["<b>", *track.runs]}
        return FeatureReport(
            (
                ReportPart("names", html, names, "Names of runs", "Names"),
                ReportPart("holes", html, names),
            )
        )

    feature = Feature((OutputFiles(("names.txt",), ("runs",), files),), report)
    declared = (*outputs.features(), feature)
    monkeypatch.setattr(outputs, "features", lambda: declared)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
        runs = list(track.files.runs())
    page = (small_track / "out" / "report.html").read_text()
    line = f'<p class="note">&lt;b&gt;, {", ".join(runs)}</p>\n</section>'
    section = f'<section aria-labelledby="names-section">\n<h2 id="names-section">Names of runs</h2>\n{line}'
    assert (small_track / "out" / "names.txt").read_text().split() == runs
    assert '<li><a href="#holes-section">Holes</a></li>\n<li><a href="#names-section">Names</a></li>' in page
    assert section in page
    holes = page[page.index('id="holes-section"') : page.index('id="names-section"')]
    assert holes.count(line) == 1, "a part of a section that another feature begins"


def test_no_two_features_declare_the_same_file_or_plot() -> None:
    names = [name for feature in outputs.features() for group in feature.files for name in group.names]
    plots = [name for feature in outputs.features() for name in feature.plots]
    assert len(names) == len(set(names))
    assert len(plots) == len(set(plots))
