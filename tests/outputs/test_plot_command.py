"""`trecexam plot` and `Track.plot`: available plots, sizes, measures, and invalid input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support import RECORDED, HashGrader, make_small_track, printed, record_grades

import trecexam
from trecexam.cli.main import run
from trecexam.outputs.plotting import inches, track_plots

Talk = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded track without drawn plots."""
    root = make_small_track(tmp_path_factory.mktemp("plots") / "track")
    record_grades(root)
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str]) -> Talk:
    def talk(*arguments: str | Path, status: int = 0) -> tuple[str, str]:
        found = printed(capsys, "plot", *arguments, status=status)
        assert status == 0 or len(found.err.splitlines()) == 1
        return found.out, found.err

    return talk


def width_of(path: Path) -> float:
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", path.read_bytes())
    assert box
    return float(box[1]) / 72


def test_a_plot_has_column_width_and_a_caption_and_python_saves_the_same_bytes(
    run_command: Talk, track: Path, tmp_path: Path
) -> None:
    out, err = run_command("scatter", track, "-o", tmp_path / "fig.pdf")
    assert out == ""
    assert err.startswith(f"{tmp_path / 'fig.pdf'}: 3.33 x 2.64 in. Automatic against official: ")
    assert "Kendall's tau" in err
    assert width_of(tmp_path / "fig.pdf") == pytest.approx(3.33, abs=1e-3)
    first = (tmp_path / "fig.pdf").read_bytes()
    with trecexam.open_track(track) as opened:
        opened.plot("scatter").savefig(tmp_path / "python.pdf")
    assert (tmp_path / "python.pdf").read_bytes() == first


def test_widths_have_units_or_are_named_columns(run_command: Talk, track: Path, tmp_path: Path) -> None:
    said = {"3.3in": 3.3, "8.4cm": 8.4 / 2.54, "84mm": 84 / 25.4, "double": 7.0, "241pt": 241 / 72.27}
    assert {width: inches(width) for width in said} == pytest.approx(said)
    assert inches(8.4 / 2.54) == 8.4 / 2.54, "a number is inches, however many digits it has"
    with pytest.raises(ValueError, match="nan: a plot is 1in to 40in wide"):
        inches(float("nan"))
    run_command("items", track, "-o", tmp_path / "fig.pdf", "--width", "241pt", "--font-size", "7")
    assert width_of(tmp_path / "fig.pdf") == pytest.approx(said["241pt"], abs=1e-3)


def test_every_plot_of_the_track_is_drawn(track: Path) -> None:
    with trecexam.open_track(track) as opened:
        for name in track_plots():
            assert opened.plot(name, width=5, height=4).get_size_inches().tolist() == [5, 4]


def test_a_plot_shows_the_requested_measures(run_command: Talk, track: Path, tmp_path: Path) -> None:
    said = run_command("leaderboard", track, "-o", tmp_path / "fig.pdf", "-m", "Cover(rel=3)@5")[1]
    assert "Leaderboard by Cover(rel=3)@5" in said
    with trecexam.open_track(track) as opened:
        title = opened.plot("scatter", measure="nDCG@5", official_measure="P(rel=2)@5").plot.title
        assert title == "Automatic against official: nDCG@5 and P(rel=2)@5"
        board = opened.leaderboard(["nDCG@5"])
        figure = opened.plot("leaderboard", measure="nDCG@5")
    assert [(row[1], row[3]) for row in figure.plot.table.rows] == [
        (row.run, row.scores[0].mean) for row in board.rows
    ]
    assert {text.get_text() for text in figure.axes[0].get_yticklabels()} == {row.run for row in board.rows}


def test_the_scatter_plot_of_an_official_leaderboard_has_its_means_or_ranks(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    means = {"run0": 0.5, "run1": 0.6, "run2": 0.1}
    for lines, label, official in (
        (
            [f"{name}\tnDCG@10\tall\t{mean}" for name, mean in means.items()],
            "official_leaderboard:nDCG@10",
            means,
        ),
        (["run0\t2", "run1\t1", "run2\t3"], "official rank", {"run0": 2, "run1": 1, "run2": 3}),
    ):
        (root / "official_leaderboard.txt").write_text("\n".join(lines) + "\n")
        with trecexam.open_track(root, grader=HashGrader()) as opened:
            opened.update()
            figure = opened.plot("scatter")
        assert figure.axes[0].get_xlabel() == label
        assert {row["run"]: row["official"] for row in figure.plot.table} == official


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("scater TRACK -o fig.pdf", "no plot 'scater'; did you mean 'scatter'? there are leaderboard, "),
        ("TRACK", "no plot '{track}'; there are leaderboard, scatter, "),
        ("scatter TRACK -o fig.tex", "fig.tex: give -o with a name that ends in .pdf"),
        ("scatter TRACK -o nowhere/fig.pdf", "nowhere/fig.pdf: the folder nowhere does not exist"),
        ("scatter TRACK -o fig.pdf --width 3", "3: give a length with its unit, as 3.3in"),
        ("scatter TRACK -o fig.pdf --font-size 99", "font size 99: give 3 to 40 points"),
        ("items TRACK -o fig.pdf -m P@5", "plot items has no measure to choose; leave out P@5"),
        ("scatter TRACK -o fig.pdf -m Nope@5", "unknown measure 'Nope@5'"),
        ("thresholds TRACK -o fig.pdf -m nDCG@5", "min_rating has no bearing on nDCG@5"),
    ],
)
def test_invalid_input_is_a_one_line_error_and_writes_nothing(
    run_command: Talk,
    track: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    out, err = run_command(*(str(track) if word == "TRACK" else word for word in arguments.split()), status=2)
    assert out == ""
    assert words.format(track=track) in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("with_report")
def test_an_update_writes_pdfs_if_configured(small_track: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trecexam.results.plots.paper.PaperFigure.file",
        lambda figure, kind: b"%PDF of " + figure.plot.name.encode(),
    )
    plots, settings = small_track / "out" / "plots", (small_track / "trecexam.toml").read_text()

    def update(settings: str) -> list[str]:
        (small_track / "trecexam.toml").write_text(settings)
        with trecexam.open_track(small_track, grader=HashGrader()) as opened:
            opened.update()
        return [path.stem for path in sorted(plots.glob("*.pdf"))]

    assert update(settings) == []
    assert update(f"{settings}[report]\npdf = true\n") == [path.stem for path in sorted(plots.glob("*.svg"))]
    assert (plots / "scatter.pdf").read_bytes() == b"%PDF of scatter"
    manifest = json.loads((small_track / "out" / "manifest.json").read_text())
    assert "plots/scatter.pdf" in manifest["outputs"]
    assert '<a href="plots/scatter.pdf">PDF</a>' in (small_track / "out" / "report.html").read_text()
    assert update(settings) == []
