"""out/report.html and out/plots/: when they are written, and their content for any track."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support import REPORTED, HashGrader, update, write_run

from trecexam.results.plots import canvas
from trecexam.results.plots.canvas import Drawing
from trecexam.results.result import Plot

PLOTS = ("leaderboard", "scatter")

pytestmark = pytest.mark.usefixtures("with_report")


def plots(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "out" / "plots").glob("*"))}


def names(root: Path) -> set[str]:
    return {name.split(".")[0] for name in plots(root)}


def page(root: Path) -> str:
    return (root / "out" / "report.html").read_text()


class _Text(HTMLParser):
    """The text of a page by the id of its sections, and its tags, which must match."""

    VOID = frozenset(("meta", "link", "br", "img"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.section = ""
        self.words: dict[str, str] = {}
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = str(dict(attrs)["aria-labelledby"]).removesuffix("-section")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "section":
            self.section = ""

    def handle_data(self, data: str) -> None:
        if not {"style", "svg"} & set(self.open):
            self.words[self.section] = " ".join(f"{self.words.get(self.section, '')} {data}".split())


def read(root: Path) -> _Text:
    parser = _Text()
    # Where long names may break.
    parser.feed(page(root).replace("<wbr>", ""))
    parser.close()
    assert parser.open == []
    assert parser.tags <= {
        "html", "head", "meta", "link", "title", "style", "body", "a", "header", "h1", "h2", "h3", "p",
        "bdi", "dl", "div", "dt", "dd", "nav", "ul", "li", "main", "section", "figure", "figcaption", "span",
        "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "code", "svg", "footer",
    }  # fmt: skip
    return parser


@pytest.fixture
def updated(small_track: Path) -> Path:
    update(small_track)
    return small_track


def test_every_plot_has_a_picture_and_numbers(small_track: Path) -> None:
    done = update(small_track)
    out = small_track / "out"
    assert sorted(plots(small_track)) == [f"{name}.{kind}" for name in PLOTS for kind in ("svg", "tsv")]
    assert {path for path in done.written if path.parent == out / "plots"} == set((out / "plots").iterdir())
    assert out / "report.html" in done.written
    assert done.written[-1] == out / "manifest.json"
    assert set(read(small_track).words) >= {
        "", "leaderboard", "official", "grades", "items", "holes", "rejected", "provenance",
    }  # fmt: skip
    assert "could not be drawn" not in page(small_track)


def test_all_links_work(small_track: Path) -> None:
    (small_track / "runs" / "bad.run").write_text("q1 Q0 d 1 high bad\n")
    update(small_track)
    found = set(re.findall(r'(?:href|src)="([^"]*)"', re.sub("<svg.*?</svg>", "", page(small_track))))
    for link in found:
        if link.startswith("#"):
            assert f'id="{link[1:]}"' in page(small_track)
        elif link != "data:,":
            assert (small_track / "out" / link).is_file(), link
    assert {"leaderboard.tsv", "per_query.tsv", "rejected.tsv", "plots/scatter.svg"} <= found


def test_switching_the_report_off_removes_it_and_moves_no_run(updated: Path) -> None:
    (updated / "out" / "plots" / "mine.txt").write_text("a note")
    (updated / "trecexam.toml").write_text(REPORTED + "[report]\nwrite = false\n")
    done = update(updated)
    assert done.moved == ()
    assert not (updated / "out" / "report.html").exists()
    assert set(plots(updated)) == {"mine.txt"}
    assert update(updated).changed is False
    assert "report.html" not in json.loads((updated / "out" / "manifest.json").read_text())["outputs"]
    (updated / "out" / "plots" / "mine.txt").unlink()
    (updated / "out" / "rubric.qrels").unlink()
    update(updated)
    assert not (updated / "out" / "plots").exists()
    (updated / "trecexam.toml").write_text(REPORTED)
    assert update(updated).moved == ()
    assert names(updated) == set(PLOTS)


def test_a_plot_that_cannot_be_drawn_stops_nothing_else(
    updated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = plots(updated)

    def draw(plot: Plot) -> Drawing:
        if plot.name == "scatter":
            raise MemoryError("<b>no room</b>")
        return Drawing(b"<svg></svg>")

    monkeypatch.setattr(canvas, "_drawn", draw)
    write_run(updated / "runs" / "new.run", {"q1": ["q1-d03"]})
    done = update(updated)
    assert done.complete
    assert done.runs == 4
    assert set(whole) - set(plots(updated)) == {"scatter.svg"}
    assert "could not be drawn: MemoryError: &lt;b&gt;no room&lt;/b&gt;" in page(updated)
    assert 'href="plots/scatter.svg"' not in page(updated)
    assert 'href="plots/scatter.tsv"' in page(updated)


@pytest.mark.parametrize("content", ["a b\n", None])
def test_unreadable_judgments_are_reported_without_a_local_path(
    small_track: Path, content: str | None
) -> None:
    (small_track / "qrels.txt").unlink()
    if content is not None:
        (small_track / "qrels.txt").write_text(content)
    update(small_track, HashGrader())
    said = "no official judgments" if content is None else "official judgments were rejected"
    assert said in page(small_track).lower()
    for path in (small_track / "out").rglob("*"):
        assert path.is_dir() or str(small_track).encode() not in path.read_bytes(), path


def test_a_track_without_runs_has_a_page(small_track: Path) -> None:
    for path in (small_track / "runs").iterdir():
        path.unlink()
    update(small_track)
    assert plots(small_track) == {}
    said = read(small_track).words
    for section in ("leaderboard", "official", "grades", "items", "holes"):
        assert "No runs yet" in said[section]
    assert "Nothing was rejected." in said["rejected"]


NASTY = (
    "<script>alert(1)</script>",
    "</svg></table><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.\u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627",
    "\U0001f680 検索",
    "nul\x00 \x1b[31m red",
    "word " * 20_000,
    "x" * 100_000,
)


def test_foreign_texts_cannot_break_the_page(small_track: Path) -> None:
    bank = small_track / "bank.questions.jsonl"
    rows = [json.loads(line) for line in bank.read_text().splitlines()]
    rows[0]["questions"] = [
        {"question_id": f"q1/{n} {text[:60]}", "question_text": text} for n, text in enumerate(NASTY)
    ]
    bank.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for n, text in enumerate(NASTY):
        tag = re.sub(r"\s", "_", text)[:2000].replace("\0", "")
        write_run(small_track / "runs" / f"{n}.run", {"q1": ["q1-d00"], "q2": ["q2-d01"]}, tag=tag)
    (small_track / "runs" / "<img src=x onerror=alert(1)>.run").write_text("not a run <b>\n")
    (small_track / "runs" / b"b\xff\xfe.run".decode("utf-8", "surrogateescape")).write_text("nor this\n")
    (small_track / "trecexam.toml").write_text(REPORTED + "[report]\ntitle = '<i>Mine</i> \u202e'\n")
    update(small_track)
    said = read(small_track)
    assert "img" not in said.tags
    assert r"<i>Mine</i> \u202e" in said.words[""]
    assert "<img src=x onerror=alert(1)>.run" in said.words["rejected"]
    assert "{{_7_*_7_}}" in said.words["leaderboard"]
    assert "\u202e" not in page(small_track)
    assert "\x00" not in page(small_track)
    assert "x" * 300 not in page(small_track)
    assert len(page(small_track)) < 200_000
