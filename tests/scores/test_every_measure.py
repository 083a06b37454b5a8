"""Every measure of ir_measures' registry, with every parameter that it declares, on ids that are words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from headings import score_columns
from ir_measures import Measure, Qrel, ScoredDoc
from ir_measures.providers.base import NOT_PROVIDED
from support import printed, tsv_table

import trecexam
from trecexam.cli.main import run
from trecexam.errors import TrecexamError
from trecexam.scores.measures import COVER, DIVERSITY
from trecexam.scores.support import SUPPORT

#: Values of the parameters that have no list of choices.
VALUES: Mapping[str, tuple[Any, ...]] = {
    "T": (2.0,), "alpha": (0.3,), "beta": (2.0,), "cutoff": (2, 30), "gains": ({1: 2, 2: 5}, {1: 0.5}),
    "judged_only": (True, False), "max_rel": (3,), "min_rel": (0,), "normalize": (False,), "p": (0.5,),
    "partial": (1,), "recall": (0.5,), "rel": (1, 2), "relative": (True,), "weights": ("vital", "item"),
}  # fmt: skip
COUNTS = ("NumQ", "NumRel", "NumRet")
LABELS = {
    "cats eat": {"fish": 2, "mouse": 1, "car": 0, "dog": -1, "junk": -2},
    "dogs sleep": {"basket": 3, "fish": 0},
    "cars": {"road": 1},
}
RUNS = {
    "one": {
        "cats eat": ["car", "fish", "junk", "dog", "tree"],
        "dogs sleep": ["fish", "basket"],
        "cars": ["tree"],
    },
    "two": {"cats eat": ["fish", "mouse"], "cars": ["tree", "road", "car"]},
}


def every_measure() -> Iterator[Measure]:
    """Yield each measure without and with each of its parameters, and with each pair of them."""
    distinct = {each.NAME: type(each) for _, each in sorted(ir_measures.measures.registry.items())}
    for kind in distinct.values():
        infos = kind.SUPPORTED_PARAMS
        required = {key: VALUES[key][0] for key, info in infos.items() if info.required}
        options = [
            [(key, value) for value in (VALUES[key] if info.choices is NOT_PROVIDED else info.choices)]
            for key, info in infos.items()
        ]
        yield kind()
        chosen = [[each] for option in options for each in option]
        chosen += [[*two] for pair in itertools.combinations(options, 2) for two in itertools.product(*pair)]
        for pairs in chosen:
            yield kind(**required | dict(pairs))


MEASURES = list({str(measure): measure for measure in every_measure()})


def base(name: str) -> str:
    """Return a measure's name without parameters."""
    return name.partition("@")[0].partition("(")[0]


def query(name: str) -> str:
    return name.replace(" ", "-")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("words") / "track"
    (root / "runs").mkdir(parents=True)
    (root / "queries.tsv").write_text("".join(f"{query(q)}\t{q}\n" for q in LABELS))
    judged = "".join(f"{query(q)} 0 {d} {n}\n" for q, of in LABELS.items() for d, n in of.items())
    (root / "qrels.txt").write_text(judged)
    (root / "grades.qrels").write_text(judged)
    for name, of_run in RUNS.items():
        lines = [
            f"{query(q)} Q0 {d} {rank} {-rank} {name}\n"
            for q, docs in of_run.items()
            for rank, d in enumerate(docs)
        ]
        (root / "runs" / f"{name}.run").write_text("".join(lines))
    (root / "trecexam.toml").write_text('[grader]\nname = "recorded"\nrecorded = "grades.qrels"\n')
    with trecexam.open_track(root) as track:
        track.update()
    return root


def by_ir_measures(measure: Measure, name: str) -> float | None:
    """Return a run's value by ir_measures' providers: over all queries, an undefined one is 0.

    None where no provider gives values.
    """
    rows = [Qrel(query(q), d, n) for q, of in LABELS.items() for d, n in of.items()]
    if measure.NAME == "Judged":
        rows = [row for row in rows if row.relevance != -1]
    docs = [ScoredDoc(query(q), d, float(-rank)) for q, of in RUNS[name].items() for rank, d in enumerate(of)]
    try:
        if measure.NAME in COUNTS:
            return float(ir_measures.calc_aggregate([measure], rows, docs)[measure])
        values = [metric.value for metric in ir_measures.iter_calc([measure], rows, docs)]
    except Exception:
        return None
    return sum(value for value in values if math.isfinite(value)) / len(LABELS)


def test_every_measure_has_ir_measures_value_or_is_refused_with_a_reason(root: Path) -> None:
    """Through the leaderboard on grades, and on official judgments."""
    n_equal, refused = 0, dict[str, str]()
    with trecexam.open_track(root) as track:
        track.update()
        for name in MEASURES:
            for official in (False, True):
                try:
                    board = track.leaderboard([name], official=official)
                except (ValueError, TrecexamError) as error:
                    refused[name] = str(error)
                    continue
                if not official:
                    continue
                measure = ir_measures.parse_measure(name)
                for row in board.rows:
                    expected = by_ir_measures(measure, row.run)
                    if expected is not None:
                        assert row.scores[0].mean == pytest.approx(expected, abs=1e-9), (name, row.run)
                        n_equal += 1
    assert n_equal > 150
    for name, reason in refused.items():
        assert base(name) in reason
        assert "\n" not in reason


@pytest.mark.parametrize("official", [False, True])
def test_no_measure_gives_a_traceback_on_the_command_line(
    root: Path, capsys: pytest.CaptureFixture[str], official: bool
) -> None:
    able = [
        name
        for name in MEASURES
        if name.partition("(")[0].partition("@")[0] not in {*COVER, *DIVERSITY, *SUPPORT}
    ]
    for name in able[:: 7 if official else 5]:
        status = run(
            ["leaderboard", str(root), "-m", name, "-m", "AP", *(["--official"] if official else [])]
        )
        told = capsys.readouterr()
        assert status in (0, 2), name
        assert "Traceback" not in told.err
        assert told.out.startswith("run\t") or base(name) in told.err


def test_evaluate_takes_every_measure_that_a_leaderboard_does(root: Path, thorough: bool) -> None:
    able = []
    with trecexam.open_track(root) as track:
        for name in MEASURES if thorough else MEASURES[::3]:
            try:
                track.leaderboard([name])
            except (ValueError, TrecexamError):
                with pytest.raises(TrecexamError):
                    trecexam.evaluate(
                        {"one": root / "runs" / "one.run"}, recorded=root / "grades.qrels", measures=[name]
                    )
                continue
            able.append(name)
        runs = {name: root / "runs" / f"{name}.run" for name in RUNS}
        queries = {query(q): q for q in LABELS}
        board = track.leaderboard(able)
        with trecexam.evaluate(runs, recorded=root / "grades.qrels", queries=queries, measures=able) as done:
            found = done.leaderboard
    for one, other in zip(found.rows, board.rows, strict=True):
        assert (one.run, [score.mean for score in one.scores]) == (
            other.run,
            [score.mean for score in other.scores],
        )


@pytest.mark.parametrize("cutoff", [None, 1, 2, 3, 30])
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("gains", [None, {1: 3, 3: 0}])
def test_exponential_gain_equals_a_naive_sum(
    root: Path, cutoff: int | None, judged_only: bool, gains: dict[int, int] | None
) -> None:
    params = {"cutoff": cutoff, "judged_only": judged_only or None, "gains": gains}
    measure = ir_measures.nDCG(
        dcg="exp-log2", **{key: value for key, value in params.items() if value is not None}
    )

    def dcg(labels: list[int]) -> float:
        mapped = [(gains or {}).get(label, label) for label in labels]
        return sum((2 ** max(g, 0) - 1) / math.log2(rank + 2) for rank, g in enumerate(mapped[:cutoff]))

    with trecexam.open_track(root) as track:
        board = track.leaderboard([measure], official=True)
    for row in board.rows:
        values = []
        for q, of_query in LABELS.items():
            docs = RUNS[row.run].get(q, [])
            ranked = [of_query.get(d, -1) for d in docs if not judged_only or of_query.get(d, -1) >= 0]
            ideal = dcg(sorted(of_query.values(), key=lambda n: -(gains or {}).get(n, n)))
            values.append(dcg(ranked) / ideal if ideal else 0)
        assert row.scores[0].mean == pytest.approx(sum(values) / len(values)), row.run


def test_exponential_gain_equals_gdeval_where_that_gives_it() -> None:
    """gdeval takes query ids that are numbers, and labels up to 4; it prints five digits."""
    from trecexam.scores.columns import provider

    measure = ir_measures.nDCG(dcg="exp-log2") @ 5
    rows = [
        Qrel(str(number), d, min(n, 4)) for number, of in enumerate(LABELS.values(), 1) for d, n in of.items()
    ]
    docs = [
        ScoredDoc(str(number), d, float(-rank))
        for number, q in enumerate(LABELS, 1)
        for rank, d in enumerate(RUNS["one"].get(q, []))
    ]
    try:
        expected = {m.query_id: m.value for m in ir_measures.gdeval.iter_calc([measure], rows, docs)}
    except Exception as error:
        pytest.skip(f"gdeval does not run here: {error}")
    found = {m.query_id: m.value for m in provider.iter_calc([measure], rows, docs)}
    assert found == pytest.approx(expected, abs=1e-5)


def test_labels_of_any_size_have_an_exponential_gain() -> None:
    from trecexam.scores.columns import provider

    rows = [Qrel("q", "a", 1_000_000), Qrel("q", "b", 999_999), Qrel("q", "c", 1)]
    docs = [ScoredDoc("q", d, float(score)) for score, d in enumerate("cab")]
    measure = ir_measures.nDCG(dcg="exp-log2")
    whole = 1 + 0.5 / math.log2(3)
    assert provider.calc_aggregate([measure], rows, docs)[measure] == pytest.approx(
        (0.5 + 1 / math.log2(3)) / whole
    )


@pytest.mark.parametrize("official", [False, True])
def test_a_measure_whose_provider_fails_is_named_and_the_others_are_shown(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, official: bool
) -> None:
    real = ir_measures.evaluator

    def evaluator(measures: list[Measure], qrels: Any) -> Any:
        if any(measure.NAME == "Bpref" for measure in measures):
            raise OSError("no such program\nand more")
        return real(measures, qrels)

    monkeypatch.setattr(ir_measures, "evaluator", evaluator)
    words = ["--official"] if official else []
    told = printed(capsys, "leaderboard", root, "-m", "Bpref", "-m", "infAP", "-m", "AP", *words)
    header = score_columns(told.out.splitlines()[0].split("\t"))
    assert header == ["infAP", "infAP.stderr", "AP", "AP.stderr"]
    assert "Bpref has no values: ir_measures failed (OSError: no such program)\n" in told.err
    config = root / "trecexam.toml"
    settings = config.read_text()
    try:
        for names in ('["Bpref", "AP"]', '["Bpref"]'):
            config.write_text(f"{settings}[scores]\nmeasures = {names}\nofficial_measures = {names}\n")
            assert run(["watch", str(root), "--once"]) == 0
            shown = (root / "out" / "leaderboard.json").read_text()
            assert "Bpref has no values: ir_measures failed" in shown
            for command in ("leaderboard", "compare", "correlate"):
                assert run([command, str(root)]) == (0 if "AP" in names or command == "leaderboard" else 2)
                assert "Bpref has no values" in capsys.readouterr().err
    finally:
        config.write_text(settings)


def test_counts_are_sums_without_a_standard_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("NumQ", "NumRel", "NumRet", "NumRet(rel=1)")
    words = (word for name in names for word in ("-m", name))
    for cells in tsv_table(printed(capsys, "leaderboard", root, "--official", *words).out):
        for name in names:
            expected = by_ir_measures(ir_measures.parse_measure(name), cells["run"])
            assert float(cells[name]) == expected
            assert cells[f"{name}.stderr"] == ""
