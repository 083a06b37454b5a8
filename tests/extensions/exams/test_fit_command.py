from __future__ import annotations

import csv
import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from support import RECORDED, make_small_track, record_grades, tsv_rows, write_run

import trecexam
from converters import ConversionError
from trecexam.cli.main import run
from trecexam.extensions.exams.fitting import fit_exam, improve_exam
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.response_matrix import read_components, read_groups, read_matrix
from trecexam.track import Track


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """15 examinees by 12 questions; one question answered right by all, two missing responses."""
    rng = np.random.default_rng(4)
    theta = np.array([(n % 3) * 0.8 - 0.8 + (n // 3 % 2) * 0.5 for n in range(15)])
    chance = probability(
        theta, rng.uniform(0.5, 1.5, 12), rng.uniform(0.01, 1, 12), rng.uniform(0.2, 0.4, 12)
    )
    values = (rng.random(chance.shape) < chance).astype(int).astype(str)
    values[:, 3] = "1"
    values[2, 5] = values[4, 0] = ""
    lines = ["examinee\t" + "\t".join(f"q{i}" for i in range(12))]
    lines += [f"s{j}\t" + "\t".join(row) for j, row in enumerate(values)]
    (tmp_path / "matrix.tsv").write_text("\n".join(lines) + "\n")
    made_of = [f"s{j}\tllm{j % 3}\t{['bm25', 'dense'][j // 3 % 2]}\ten" for j in range(15)]
    (tmp_path / "components.tsv").write_text("\n".join(["examinee\tllm\tretriever\tlang", *made_of]) + "\n")
    groups = [f"q{i}\t{'remembering' if i % 2 else 'applying|remembering'}" for i in range(12)]
    (tmp_path / "groups.tsv").write_text("\n".join(["item\tbloom level", *groups]) + "\n")
    return tmp_path / "matrix.tsv"


@pytest.mark.plots
def test_fit_writes_the_documented_files_and_columns(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "fitted"
    options = ["--components", str(tmp_path / "components.tsv"), "--groups", str(tmp_path / "groups.tsv")]
    assert run(["exam", "fit", str(matrix), "-o", str(out), *options]) == 0
    shown = capsys.readouterr()
    items = tsv_rows(out / "items.tsv")
    assert list(items[0]) == ["item", "a", "b", "c", "se_a", "se_b", "se_c", "n"]
    assert [row["item"] for row in items] == [f"q{i}" for i in range(12)]
    assert items[5]["n"] == "14"
    people = tsv_rows(out / "examinees.tsv")
    assert list(people[0]) == ["rank", "examinee", "theta", "theta.low", "theta.high", "se", "accuracy"]
    assert {row["examinee"] for row in people} == {f"s{j}" for j in range(15)}
    thetas = [float(row["theta"]) for row in people]
    assert thetas == sorted(thetas, reverse=True)
    levels = tsv_rows(out / "components.tsv")
    assert list(levels[0]) == ["component", "level", "theta", "se"]
    assert [(row["component"], row["level"]) for row in levels] == [
        ("llm", "llm0"), ("llm", "llm1"), ("llm", "llm2"), ("retriever", "bm25"), ("retriever", "dense"),
    ]  # fmt: skip
    curves = tsv_rows(out / "information.tsv")
    assert list(curves[0])[:3] == ["theta", "test", "test.compat"]
    assert "bloom level:remembering" in curves[0]
    assert (curves[0]["theta"], curves[-1]["theta"]) == ("-4.000", "4.000")
    a, b, c = (np.array([float(row[name]) for row in items]) for name in "abc")
    for row in curves[::40]:
        p = c + (1 - c) / (1 + np.exp(-a * (float(row["theta"]) - b)))
        exact, compat = a**2 * (1 - p) / p * ((p - c) / (1 - c)) ** 2, a**2 * p * (1 - p)
        assert float(row["test"]) == pytest.approx(exact.sum(), abs=2e-2)
        assert float(row["test.compat"]) == pytest.approx(compat.sum(), abs=2e-2)
        assert float(row["item"]) == pytest.approx(exact.mean(), abs=2e-3)
    fit = json.loads((out / "fit.json").read_text())
    needed = "model log_likelihood rmse rmse_baseline n_items n_examinees converged iterations seconds"
    assert set(needed.split()) <= set(fit)
    assert (fit["model"], fit["n_items"], fit["n_examinees"], fit["converged"]) == ("3pl", 12, 15, True)
    assert not any(cell.lower() in ("nan", "inf") for row in items for cell in row.values())
    assert all(math.isfinite(float(row[name])) for row in items for name in ("a", "b", "c"))
    assert items[3]["se_a"] == items[3]["se_b"] == ""
    names = {"item_curves", "information", "abilities"}
    for name in names:
        ElementTree.fromstring((out / "plots" / f"{name}.svg").read_text())
    assert {path.stem for path in (out / "plots").iterdir()} == names
    for said in ("2 of 180 responses are missing", "everyone got right", "component 'lang'"):
        assert said in shown.err
    assert "2 more notes: --json has all" in shown.err
    assert shown.out == (out / "examinees.tsv").read_text()


def test_a_second_fit_removes_the_files_of_the_first(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "fitted"
    call = ["exam", "fit", str(matrix), "-o", str(out)]
    assert run([*call, "--components", str(tmp_path / "components.tsv")]) == 0
    assert run([*call, "--model", "1pl"]) == 0
    assert not (out / "components.tsv").exists()
    assert {row["a"] for row in tsv_rows(out / "items.tsv")} == {"1.000"}
    assert {row["c"] for row in tsv_rows(out / "items.tsv")} == {"0.000"}


def test_items_and_examinees_with_the_same_responses_are_ordered_by_rule_not_by_rounding(
    tmp_path: Path,
) -> None:
    rows = ["examinee\tq1\tq2\tq3\tq4\tq5", "b\t1\t1\t0\t0\t1", "a\t1\t1\t0\t0\t1"]
    rows += ["c\t0\t0\t1\t1\t1", "d\t1\t1\t0\t0\t0", "e\t0\t0\t0\t0\t0"]
    (tmp_path / "matrix.tsv").write_text("\n".join(rows) + "\n")
    for model in ("3pl", "2pl"):
        found = fit_exam(tmp_path / "matrix.tsv", Settings.of(model, priors=True))
        order = found.tables["item_quality"]["item"]
        assert order.index("q2") + 1 == order.index("q1")
        assert order.index("q4") + 1 == order.index("q3")
        names = found.tables["examinees"]["examinee"]
        assert names.index("a") + 1 == names.index("b")
        ranks = dict(zip(names, found.tables["examinees"]["rank"], strict=True))
        assert ranks["a"] == ranks["b"]


@pytest.mark.plots
@pytest.mark.slow
def test_improve_writes_a_folder_per_step_and_the_curve_of_every_step(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "improved"
    call = ["exam", "improve", str(matrix), "-o", str(out), "--drop", "0.2"]
    assert run([*call, "--steps", "4"]) == 0
    assert run([*call, "--steps", "2"]) == 0
    shown = capsys.readouterr()
    steps = tsv_rows(out / "steps.tsv")
    assert [row["n_items"] for row in steps] == ["12", "10", "8"]
    assert [row["folder"] for row in steps] == ["step-0", "step-1", "step-2"]
    assert sorted(path.name for path in out.iterdir()) == ["plots", "step-0", "step-1", "step-2", "steps.tsv"]
    left = [row["item"] for row in tsv_rows(out / "step-2" / "items.tsv")]
    gone = " ".join(row["dropped"] for row in steps).split()
    assert sorted(left + gone) == sorted(f"q{i}" for i in range(12))
    assert gone[0] == "q3"
    assert [row["converged"] for row in steps] == ["true", "true", "true"]
    assert "step 2: 8 items" in tsv_rows(out / "plots" / "information_by_step.tsv")[0]
    assert shown.out.splitlines()[-3:] == (out / "steps.tsv").read_text().splitlines()[-3:]
    again = improve_exam(matrix, steps=2, drop=0.2)
    assert [len(step.exam.items) for step in again.fits] == [12, 10, 8]


@pytest.mark.parametrize(
    ("components", "reason"),
    [
        ("examinee\tllm\ns1\ta\n", r"components\.tsv: no components of examinee 's2'"),
        ("examinee\tllm\ns1\ta\ns2\ta\ns3\ta\n", "every component has the same level"),
        ("examinee\tllm\ns1\t\n", r"components\.tsv:2: examinee 's1' has no llm"),
    ],
)
def test_components_that_do_not_match_are_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], components: str, reason: str
) -> None:
    (tmp_path / "m.tsv").write_text("examinee\tq1\tq2\ns1\t1\t0\ns2\t0\t1\ns3\t1\t1\n")
    (tmp_path / "components.tsv").write_text(components)
    options = ["-o", str(tmp_path / "o"), "--components", str(tmp_path / "components.tsv")]
    assert run(["exam", "fit", str(tmp_path / "m.tsv"), *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(reason, error)


def test_examinees_and_items_without_responses_are_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tsv").write_text("examinee\tq1\tq2\tq3\ns1\t1\t0\t\ns2\t0\t1\t\ns3\t\t\t\ns4\t1\t1\t\n")
    assert run(["exam", "fit", str(tmp_path / "m.tsv"), "-o", str(tmp_path / "o")]) == 0
    error = capsys.readouterr().err
    assert "left out: examinees 's3'" in error
    assert "left out: questions 'q3'" in error
    assert "s4" in error  # got everything right


def test_priors_are_the_default_and_without_them_the_published_objective_is_used(
    matrix: Path, tmp_path: Path
) -> None:
    def fit_of(*more: str) -> dict[str, object]:
        out = tmp_path / "o"
        assert run(["exam", "fit", str(matrix), "-o", str(out), *more]) == 0
        return json.loads((out / "fit.json").read_text())

    weak = {"a": [0, 0.5], "b": [0, 2], "c": [2, 5], "theta": [0, 1]}
    assert fit_of()["priors"] == weak
    assert fit_of()["log_likelihood"] == pytest.approx(fit_exam(matrix).fit.log_likelihood, abs=1e-3)
    published = fit_of("--no-priors")
    assert (published["priors"], published["anchor"]) == ({}, "bounds")
    best = fit_exam(matrix, Settings.of("3pl")).fit.log_likelihood
    assert published["log_likelihood"] == pytest.approx(best, abs=1e-3)
    assert published["log_likelihood"] > fit_of()["log_likelihood"]


def test_a_fit_that_does_not_converge_exits_with_1(
    matrix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Settings.of
    monkeypatch.setattr(
        Settings, "of", classmethod(lambda _, name, **more: replace(whole(name, **more), max_iterations=1))
    )
    call = ["exam", "fit", str(matrix), "-o", str(tmp_path / "o")]
    assert run(call) == 1
    assert "not converged" in capsys.readouterr().err


def naive_responses(track: Track, min_rating: int, depth: int) -> dict[tuple[str, str], int | None]:
    """run, item -> response, from the grades and the run files by loops."""
    ratings = {(g["query_id"], g["doc_id"], g["item_id"]): g["rating"] for g in track.grades()}
    found: dict[tuple[str, str], int | None] = {}
    items = {(q, i) for q, _, i in ratings}
    for name, path in track.files.runs().items():
        ranked: dict[str, list[tuple[float, str]]] = {}
        for line in Path(path).read_text().splitlines():
            query_id, _, doc_id, _, score, _ = line.split()
            ranked.setdefault(query_id, []).append((float(score), doc_id))
        for query_id, item in items:
            docs = [doc for _, doc in sorted(ranked.get(query_id, []), reverse=True)][:depth]
            rated = [r for doc in docs if (r := ratings.get((query_id, doc, item))) is not None]
            found[name, item] = int(any(r >= min_rating for r in rated)) if rated or not docs else None
    return found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded track: eight runs, of which four return few passages."""
    root = make_small_track(tmp_path_factory.mktemp("exam") / "track")
    for number in (3, 5, 7, 8, 9):
        write_run(
            root / "runs" / f"run{number}.run",
            {
                f"q{q}": [f"q{q}-d{(d * 5 + number * q) % 12:02}" for d in range(8 - number // 2)]
                for q in (1, 2, 3)
            },
        )
    write_run(root / "runs" / "skips.run", {"q1": ["q1-d00", "q1-d01"]})
    record_grades(root)
    shutil.rmtree(root / ".trecexam")
    (root / "trecexam.toml").write_text(RECORDED)
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.fixture
def track(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "track"))


@pytest.mark.parametrize(("min_rating", "depth"), [(4, 8), (5, 2)])
def test_a_track_is_read_as_an_exam_of_its_runs(track: Path, min_rating: int, depth: int) -> None:
    config = track / "trecexam.toml"
    config.write_text(
        config.read_text().replace("depth = 8", f"depth = {depth}") + f"[scores]\nmin_rating = {min_rating}\n"
    )
    with trecexam.open_track(track) as opened:
        found = opened.exam.fit()
        expected = naive_responses(opened, min_rating, depth)
    exam = found.exam
    seen = {
        (name, item): None if math.isnan(value) else int(value)
        for name, row in zip(exam.examinees, exam.values, strict=True)
        for item, value in zip(exam.items, row, strict=True)
    }
    assert len(seen) > 50
    assert seen == {key: value for key, value in expected.items() if key in seen}
    left = {item for _, item in expected} - set(exam.items)
    assert all(value is None for (_, item), value in expected.items() if item in left)
    assert found.fit.settings.model == "2pl"
    assert found.fit.settings.anchor == "prior"
    theirs = {(ours, official) for ours, official, _ in found.official}
    assert {ours for ours, _ in theirs} == {"theta", "accuracy"}


def test_retired_items_are_left_out_and_ratings_by_people_count(track: Path) -> None:
    with trecexam.open_track(track) as opened:
        exam = opened.exam.fit().exam
        place = next(
            n for n in range(len(exam.items)) if 0 < np.nansum(exam.values[:, n]) < len(exam.examinees)
        )
        item, query_id = exam.items[place], exam.queries[exam.items[place]]
        docs = sorted({g["doc_id"] for g in opened.grades() if g["query_id"] == query_id})
        for doc_id in docs:
            opened.override(query_id, doc_id, 0, item=item, who="me", why="a test")
    with trecexam.open_track(track) as opened:
        exam = opened.exam.fit().exam
        assert not np.nansum(exam.values[:, exam.items.index(item)])
    bank = track / "bank.questions.jsonl"
    rows = [json.loads(line) for line in bank.read_text().splitlines()]
    flat = [
        {"query_id": row["query_id"], "question_id": q["question_id"], "question": q["question_text"]}
        | ({"retired": True} if q["question_id"] == item else {})
        for row in rows
        for q in row["questions"]
    ]
    bank.write_text("".join(json.dumps(row) + "\n" for row in flat))
    with trecexam.open_track(track) as opened:
        assert item not in opened.exam.fit().exam.items


def test_verify_spurious_shows_the_discrimination_of_each_item_between_runs(
    track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with trecexam.open_track(track) as opened:
        fitted = opened.exam.fit()
    a = dict(zip(fitted.exam.items, fitted.fit.a, strict=True))
    share = dict(zip(fitted.exam.items, np.nanmean(fitted.exam.values, axis=0), strict=True))
    capsys.readouterr()
    assert run(["verify", "spurious", str(track), "--sort", "discrimination"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t"))
    assert len(rows) == 12
    for row in rows:
        if share.get(row["item_id"], 0) in (0, 1):
            assert row["discrimination"] == ""
        else:
            assert float(row["discrimination"]) == pytest.approx(a[row["item_id"]], abs=1e-3)
    known = [float(row["discrimination"]) for row in rows if row["discrimination"]]
    assert known == sorted(known)
    assert known


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_table_has_ones_zeros_and_empty_cells(tmp_path: Path) -> None:
    found = read_matrix(
        written(tmp_path / "m.tsv", "examinee\tq 1\tq2\r\nbm25\t1\t\r\n\r\ndense\t0\t1.0\r\n")
    )
    assert found.examinees == ("bm25", "dense")
    assert found.items == ("q 1", "q2")
    assert found.values[0, 0] == 1
    assert np.isnan(found.values[0, 1])
    assert found.values[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("examinee\tq1\ns\t2\n", 2, "examinee 's', question 'q1': '2' is neither 0, 1 nor empty"),
        ("examinee\tq1\ns\t1\ns\t0\n", 3, "examinee 's' occurs twice"),
        ("examinee\tq1\tq1\ns\t1\t0\n", 1, "names question 'q1' twice"),
        ("examinee\tq1\ns\t1\t0\n", 2, "has 3 columns, the header line has 2"),
        ("system\tq1\ns\t1\n", 1, "the first column is 'system'"),
        ("examinee\ns\n", 1, "no question"),
        ("examinee\tq1\t\ns\t1\t0\n", 1, "column 3 has no question id"),
        ("examinee\tq1\n\t1\n", 2, "no examinee in the first column"),
        ("examinee\tq1\n", None, "the file has only a header line"),
    ],
)
def test_an_unreadable_table_is_rejected_with_its_line(
    tmp_path: Path, text: str, line: int | None, reason: str
) -> None:
    with pytest.raises(ConversionError, match=reason) as error:
        read_matrix(written(tmp_path / "m.tsv", text))
    assert error.value.line == line


def test_json_lines_have_one_response_each(tmp_path: Path) -> None:
    rows = [
        {"examinee": "s1", "question_id": "q1", "acc": 1},
        {"examinee": "s1", "question_id": "q2", "acc": False},
        {"examinee": "s2", "question_id": "q2", "correct": 1.0},
        {"examinee": "s2", "question_id": "q1", "acc": None},
    ]
    found = read_matrix(written(tmp_path / "m.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))
    assert (found.examinees, found.items) == (("s1", "s2"), ("q1", "q2"))
    assert found.values[0].tolist() == [1, 0]
    assert np.isnan(found.values[1, 0])
    assert found.values[1, 1] == 1


def test_a_folder_has_one_file_per_examinee_as_in_the_released_code(tmp_path: Path) -> None:
    questions = ["What is sous vide?", "Where is CDG airport?"]
    for name, accs in (("flan", [1.0, 0.0]), ("closed", [0, 1])):
        rows = [
            {"doc": {"question": q, "doc_id": "same"}, "acc": acc}
            for q, acc in zip(questions, accs, strict=True)
        ]
        written(tmp_path / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = read_matrix(tmp_path)
    assert found.examinees == ("closed", "flan")
    assert found.items == ("1", "2")
    assert found.texts["2"] == "Where is CDG airport?"
    assert found.values.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"question_id": "q1", "acc": 1}], 'no "examinee" in it'),
        ([{"examinee": "s", "question_id": "q1"}], 'no "acc" in it'),
        ([{"examinee": "s", "question_id": "q1", "acc": 2}], "'2' is neither 0, 1 nor null"),
        ([{"examinee": "s", "question_id": "q1", "acc": 1}] * 2, "already responded to question 'q1'"),
        (
            [
                {"examinee": "s", "doc": {"question": "one?"}, "question_id": "q1", "acc": 1},
                {"examinee": "t", "doc": {"question": "two?"}, "question_id": "q1", "acc": 1},
            ],
            "another text than before",
        ),
    ],
)
def test_unreadable_json_lines_are_rejected(tmp_path: Path, rows: list, reason: str) -> None:  # type: ignore[type-arg]
    path = written(tmp_path / "m.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ConversionError, match=reason) as error:
        read_matrix(path)
    assert error.value.line == len(rows)


def test_components_and_groups_are_tables_of_labels(tmp_path: Path) -> None:
    found = read_components(written(tmp_path / "c.tsv", "examinee\tllm\ticl\ns\tflan\t0\n"))
    assert (found.names, found.rows) == (("llm", "icl"), {"s": ("flan", "0")})
    groups = read_groups(written(tmp_path / "g.tsv", "item\tbloom\nq1\tapplying|creating\nq2\t\n"))
    assert groups.rows == {"q1": ("applying|creating",), "q2": ("",)}


def test_the_likelihood_in_fit_json_belongs_to_the_written_tables(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "fitted"
    assert run(["exam", "fit", str(matrix), "-o", str(out)]) == 0
    items = tsv_rows(out / "items.tsv")
    thetas = {row["examinee"]: float(row["theta"]) for row in tsv_rows(out / "examinees.tsv")}
    a, b, c = (np.array([float(row[name]) for row in items]) for name in "abc")
    p = probability([thetas[row["examinee"]] for row in tsv_rows(matrix)], a, b, c)
    total = 0.0
    for j, row in enumerate(tsv_rows(matrix)):
        for i in range(12):
            if row[f"q{i}"]:
                total += math.log(p[j, i] if row[f"q{i}"] == "1" else 1 - p[j, i])
    assert json.loads((out / "fit.json").read_text())["log_likelihood"] == pytest.approx(total, abs=0.05)
