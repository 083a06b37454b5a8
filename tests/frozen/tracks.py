"""The frozen tracks: how each is made, and which commands are run on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import material
from learnable import WordEncoder
from material import toml
from outside import outside
from rag_track import make_demo_with_two_graders
from recorder import Recorder

from trecexam.extensions.learn import learned_pool

TRACKS: dict[str, Callable[[Recorder], None]] = {}


def track(recipe: Callable[[Recorder], None]) -> Callable[[Recorder], None]:
    TRACKS[recipe.__name__] = recipe
    return recipe


def _ranked(
    of: Recorder, *, holes: int = 3, judged: bool = True, grader: str = "", track: str = "", more: str = ""
) -> None:
    """A track of retrieval runs: queries, passages, four runs, and judgments with holes."""
    of.write("queries.tsv", "".join(f"{q}\t{said}\n" for q, said in material.QUERIES.items()))
    of.jsonl("passages.jsonl", *material.passages())
    for name, lines in material.runs().items():
        of.write(f"runs/{name}.run", lines)
    if judged:
        of.write("qrels.txt", material.qrels(holes=holes))
    of.write("trecexam.toml", f"[track]\ndepth = 8\n{track}{grader}{more}")


def _asked(url: str, section: str = "grader", **words: object) -> str:
    return toml(section, name="openai", model="tiny", base_url=url, price_in=1.0, price_out=2.0, **words)


def lay_out_rag(of: Recorder) -> None:
    """Queries, passages, people's judgments, three systems' responses, a run, and a bank of nuggets."""
    of.write("queries.tsv", "".join(f"{q}\t{said}\n" for q, said in material.QUERIES.items()))
    of.jsonl("passages.jsonl", *material.passages())
    of.write("people.qrels", material.qrels())
    for run in ("full", "brief", "silent"):
        of.jsonl(f"runs/{run}.jsonl", *material.responses(run))
    for name, lines in material.runs(names="a").items():
        of.write(f"runs/{name}.run", lines)
    of.jsonl("bank.nuggets.jsonl", *material.nuggets())


@track
def demo(of: Recorder) -> None:
    """The demo with two graders; ratings of cells, passages and sentences; settings that go and come back."""
    track = of.track
    of.does("demo", of.root / "of-one-grader")
    make_demo_with_two_graders(track)
    of.does("watch", track, "--once")
    of.made()
    for line in (
        "status",
        "leaderboard --grader rubric",
        "leaderboard --grader support",
        "leaderboard --groups",
        "leaderboard --pairs --test randomisation",
        "leaderboard --baseline bm25",
        "leaderboard --official",
        "correlate --grader rubric",
        "correlate --grader rubric --thresholds",
        "correlate --per-query -m nDCG@10",
        "agreement",
        "agreement --min-rating 3 --min-relevant 2",
        f"compare-graders --recorded {track / 'grades.jsonl.gz'}",
        "holes",
        "holes --by query --depth 5",
        "simulate removal --repeats 2",
        "simulate runs --by condensed",
        "verify grading --top 5",
        "verify grid -q q01",
        "verify missing",
        "verify spurious",
        "judge-next --top 5",
        "bank check",
        "config",
    ):
        words = line.split()
        words.insert(2 if words[0] in {"simulate", "verify", "bank"} else 1, str(track))
        of.says(*words, json=line != "config")
    (of.root / "exported").mkdir()
    for words in (
        ["qrels"],
        ["qrels", "--min-answers", "2"],
        ["subtopics"],
        ["grades"],
        ["pool"],
        ["official"],
        ["runs"],
    ):
        of.does("export", words[0], track, "-o", of.root / "exported" / "".join(words), *words[1:])
    of.does("fill", track, "-o", of.root / "exported" / "filled.qrels")
    of.does("exam", "fit", track, "-o", of.root / "exported" / "fitted")
    of.made(of.root / "exported")
    person = ("--who", "ann", "--why", "read it")
    _people(of, track, person)
    of.does("watch", track, "--once")
    of.made()
    of.each(track, "status", "leaderboard", "agreement", "override --list")
    # Settings that take outputs away: nothing of before may stay.
    before = (track / "trecexam.toml").read_text()
    (track / "trecexam.toml").write_text(
        before.replace('qrels = "qrels.txt"\n', "").replace("depth", "pool_judged = false\ndepth")
    )
    (track / "qrels.txt").rename(of.root / "qrels.away")
    (track / "runs" / "rag-demo.jsonl").unlink()
    of.does("watch", track, "--once")
    of.made()
    of.says("correlate", track)
    (of.root / "qrels.away").rename(track / "qrels.txt")
    (track / "trecexam.toml").write_text(before)
    of.again()
    of.says("leaderboard", track)


def _people(of: Recorder, track: Path, person: tuple[str, ...]) -> None:
    """People rate by what out/ says is there: a cell, a whole passage, a sentence with its citation."""
    rows = [json.loads(line) for line in (of.root / "exported" / "grades").read_text().splitlines()]
    first, second = rows[3], rows[-7]
    cell = ("--query", first["query_id"], "--doc", first["doc_id"], "--item", first["item_id"])
    of.does("override", track, *cell, "--rating", str((first["rating"] or 0) ^ 1), *person)
    passage = ("--query", second["query_id"], "--doc", second["doc_id"])
    of.does("override", track, *passage, "--rating", "1", *person)
    header, *lines = [
        line.split("\t") for line in (track / "out" / "support" / "support.tsv").read_text().splitlines()
    ]
    for at, label in ((0, "no"), (3, "partial")):
        row = dict(zip(header, lines[at], strict=True))
        of.does("override", track, *_sentence(row), "--rating", label, *person)
    of.does("override", track, *passage, "--withdraw", *person)
    of.does("override", track, *passage, "--rating", "3", "--who", "bob", "--why", "looked again")


def _sentence(row: dict[str, str]) -> list[str]:
    """The options that name a sentence with its citation."""
    item = f"{row['run']}:{row['sentence']}"
    return f"--query {row['query_id']} --doc {row['doc_id']} --grader support --item {item}".split()


@track
def recorded(of: Recorder) -> None:
    """Recorded grades with gaps, unreadable ones and lines that are refused; two graders in one recording."""
    _ranked(
        of, grader='[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n', track="pool_judged = true\n"
    )
    of.jsonl("bank.questions.jsonl", *material.questions())
    rows = []
    for q in material.QUERIES:
        for at in range(14):
            for item in range(3):
                draw = material.hashed("grade", q, at, item)
                row: dict[str, object] = {
                    "query_id": q,
                    "doc_id": f"{q}-d{at:02}",
                    "item_id": f"{q}/{item}",
                    "rating": draw % 6,
                }
                if draw % 23 == 0:
                    row |= {"rating": None, "status": "unparsed"}
                if draw % 11:
                    rows.append(row)
    of.jsonl("grades.jsonl", *rows)
    of.jsonl(
        "other.jsonl", *(row | {"rating": 5 - row["rating"]} for row in rows if row["rating"] is not None)
    )  # type: ignore[operator]
    of.write("runs/broken.run", "q1 Q0 q1-d01 1 nan broken\nq1 Q0\n")
    of.write("official_leaderboard.json", '{"a": 1, "b": 2, "c": 3, "d": 4}')
    of.does("watch", of.track, "--once")
    of.made()
    other, grades = of.track / "other.jsonl", of.track / "grades.jsonl"
    of.each(
        of.track,
        "status",
        "leaderboard",
        "leaderboard -m Cover(rel=4,partial=2)@5 -m nCover(rel=3)@5 -m alpha_nDCG@5",
        "correlate",
        "correlate --official-measure official_leaderboard",
        "agreement",
        f"compare-graders --recorded {other}",
        f"compare-graders --recorded {other} --recorded {grades} --between graders",
        f"compare-graders --recorded {other} --recorded {grades} --between items",
        "holes",
        "judge-next",
    )
    # Another policy for what is missing, and it back: values move, and come back.
    settings = (of.track / "trecexam.toml").read_text()
    for policy in ("skip", "zero"):
        (of.track / "trecexam.toml").write_text(
            settings + f'[scores]\nunparsed = "{policy}"\nmin_rating = 3\n'
        )
        of.does("watch", of.track, "--once")
        of.says("leaderboard", of.track)
    old, new = of.track / "bank.questions.jsonl", of.root / "bank.new.jsonl"
    new.write_text(old.read_text().replace("What of", "And what of", 1))
    of.says("bank", "diff", old, new, of.track, "--all")
    of.does("convert", old, of.root / "of-bank.tsv", "--to", "queries")
    of.says("check", of.track / "runs" / "broken.run")
    of.says("check", of.track / "runs" / "c.run")
    of.does("exam", "fit", of.track, "-o", of.root / "fitted")
    of.made(of.root / "fitted")


@track
def embedding(of: Recorder) -> None:
    """The grader `embedding` and its support, on a part of the collection."""
    of.exact = False
    of.write("queries.tsv", "".join(f"{q}\t{said}\n" for q, said in [*material.QUERIES.items()][:2]))
    of.jsonl("passages.jsonl", *(row for row in material.passages(6) if row["docid"][:2] in {"q1", "q2"}))
    for name, lines in material.runs(6, "ab", 5).items():
        of.write(
            f"runs/{name}.run", "".join(line for line in lines.splitlines(True) if line[:2] in {"q1", "q2"})
        )
    of.jsonl(
        "runs/full.jsonl", *(row for row in material.responses("full") if row["topic_id"] in {"q1", "q2"})
    )
    of.jsonl("bank.questions.jsonl", *material.questions(2)[:2])
    of.write(
        "qrels.txt", "".join(line for line in material.qrels(6).splitlines(True) if line[:2] in {"q1", "q2"})
    )
    of.write(
        "trecexam.toml",
        '[track]\ndepth = 5\n[grader]\nname = "embedding"\n[graders.rubric]\n[graders.support]\n',
    )
    of.does("watch", of.track, "--once")
    of.made()
    of.each(of.track, "status", "leaderboard", "leaderboard -m support:SupportF1", "correlate", "agreement")
    of.again()


@track
def rag(of: Recorder) -> None:
    """A RAG track in three folders: nuggets of whole responses and support, UMBRELA, rubric."""
    url = of.server(material.answering)
    lay_out_rag(of)
    of.write(
        "trecexam.toml",
        _asked(url, "graders.nuggets") + _asked(url, "graders.support"),
    )
    main, umbrela, rubric = of.track, of.track / "umbrela", of.track / "rubric"
    model = ("--grader", "openai", "--model", "tiny", "--base-url", url)
    names = ("queries.tsv", "passages.jsonl", "bank.nuggets.jsonl", "runs")
    files = [word for name in names for word in (f"--{name.partition('.')[0]}", main / name)]
    of.does("init", umbrela, *files, "--qrels", main / "people.qrels", *model, "--prompt", "UMBRELA")
    made = umbrela / "trecexam.toml"
    made.write_text(made.read_text().replace("[track]\n", '[track]\npool = "citations"\n'))
    of.does("init", rubric, *files, *model)
    for folder in (main, umbrela, rubric):
        of.says("watch", folder, "--estimate")
        of.does("watch", folder, "--once")
        of.says("status", folder)
        of.says("leaderboard", folder)
    of.made()
    of.stored(umbrela)
    of.stored(rubric)
    of.says("leaderboard", main, "-m", "all_score", "-m", "vital_score", "-m", "support:SupportF1")
    of.says("correlate", umbrela, "--official-measure", "nDCG@10")
    of.says("agreement", umbrela)
    of.says("judge-next", umbrela, "--top", "5")
    header, *lines = [
        line.split("\t") for line in (main / "out" / "support" / "support.tsv").read_text().splitlines()
    ]
    rows = [dict(zip(header, line, strict=True)) for line in lines if line[3]]
    for row, label in zip(rows[::4], ("partial", "full", "no"), strict=False):
        of.does("override", main, *_sentence(row), "--rating", label, "--who", "ann", "--why", "x")
    item = "--query q1 --doc full/q1 --item q1/n0 --rating 5 --who ann --why y"
    of.does("override", main, *item.split())
    of.does("watch", main, "--once")
    of.made()
    of.each(main, "leaderboard", "override --list", "status")
    # A response changes and a system goes: only what is new is asked, what is old goes from out/.
    changed = material.responses("full")
    changed[0]["answer"][0]["text"] += " It was so."
    of.jsonl("runs/full.jsonl", *changed)
    (main / "runs" / "brief.jsonl").unlink()
    of.does("watch", main, "--once")
    of.again()


@track
def nuggets(of: Recorder) -> None:
    """Nuggets of whole responses, ten at a time; a bank that is written by a model, and edited."""
    url = of.server(material.answering)
    of.write("queries.tsv", "".join(f"{q}\t{said}\n" for q, said in material.QUERIES.items()))
    of.jsonl("passages.jsonl", *material.passages())
    for run in ("full", "brief"):
        of.jsonl(f"runs/{run}.jsonl", *material.responses(run))
    of.write("runs/a.run", material.runs()["a"])
    of.write(
        "trecexam.toml",
        '[track]\nunit = "response"\n'
        + _asked(url, prompt="NuggetAssign")
        + _asked(url, "generator", seed=3),
    )
    of.says("bank", "generate", of.track, "--prompt", "nuggetizer", "--estimate")
    of.does("bank", "generate", of.track, "--prompt", "nuggetizer")
    of.does("bank", "generate", of.track, "--prompt", "nuggetizer")
    of.says("bank", "check", of.track)
    of.does("watch", of.track, "--once")
    of.made()
    of.each(of.track, "status", "leaderboard", "leaderboard -m strict_vital_score -m strict_all_score")
    bank = of.track / "bank.nuggets.jsonl"
    bank.write_text(bank.read_text().replace("fact of", "the fact of", 1))
    of.does("watch", of.track, "--once")
    of.says("leaderboard", of.track)
    of.again()


@track
def erag(of: Recorder) -> None:
    """eRAG by a model behind a server, as the track's grader; and by outputs, answers and provenance."""
    url = of.server(material.answering)
    says = {
        "d1": "paris.",
        "d2": "London",
        "d3": "William Shakespeare",
        "d4": "the bard",
        "d5": "x y",
        "d6": "",
    }
    gold = {"q1": ["Paris"], "q2": ["Shakespeare", "William Shakespeare"], "q3": ["x y z"]}
    of.write(
        "queries.tsv", "q1\twhere the French parliament sits\nq2\twho wrote Hamlet\nq3\twhat is nowhere\n"
    )
    of.jsonl("passages.jsonl", *({"docid": d, "text": f"It says: {said}"} for d, said in says.items()))
    of.jsonl("bank.gold.jsonl", *({"query_id": q, "outputs": outputs} for q, outputs in gold.items()))
    rankings = {"one": {"q1": "d1 d2", "q2": "d4 d3 d6", "q3": "d5"}, "two": {"q1": "d2 d1", "q2": "d3"}}
    for run, ranking in rankings.items():
        of.write(
            f"runs/{run}.run",
            "".join(
                f"{q} Q0 {d} {r} {9 - r} {run}\n"
                for q, ids in ranking.items()
                for r, d in enumerate(ids.split(), 1)
            ),
        )
    settings = {"name": "erag", "model": "tiny", "base_url": url, "max_new_tokens": 20, "metric": "f1"}
    of.write("trecexam.toml", f"[track]\ndepth = 5\n{toml('grader', **settings)}")
    of.says("erag", of.track, "--estimate")
    of.does("watch", of.track, "--once")
    of.made()
    of.each(of.track, "status", "leaderboard")
    of.says("erag", of.track, "-o", of.root / "erag")
    measures = ["-m", "P@5", "-m", "AP", "-m", "nDCG@5", "-m", "Success@5"]
    of.says("erag", of.track, "--metric", "em", *measures, "-o", of.root / "em")
    of.says(
        "erag", of.track, "--labels", "contains-answer", "-m", "P@5", "-m", "AP", "-o", of.root / "contains"
    )
    truth = of.track / "qrels.txt"
    truth.write_text("q1 0 d1 1\nq2 0 d3 1\n")
    of.says("erag", of.track, "--labels", "provenance", "-m", "AP", "-o", of.root / "provenance")
    truth.unlink()
    of.made(*(of.root / name for name in ("erag", "em", "contains", "provenance")))
    of.write("runs/three.run", "q1 Q0 d3 1 5 three\nq3 Q0 d5 1 5 three\n")
    of.does("watch", of.track, "--once")
    of.says("leaderboard", of.track)
    of.again()


@track
def ragval(of: Recorder) -> None:
    """RAGVAL from knowledge blocks to the report: questions, both bounds, judge, people."""
    url = of.server(material.answering)
    blocks = [
        {
            "block_id": f"k{n}",
            "content": f"{word} moves things.",
            "date": f"20{20 + n}-05-01",
            "lang": "en",
        }
        for n, word in enumerate(("Heat", "Frost", "Wind", "Rain", "Light", "Sound"))
        if word not in ("Heat", "Rain")
    ]
    of.jsonl("blocks.jsonl", *blocks)
    of.write(
        "trecexam.toml",
        toml("grader", name="ragval", model="tiny", base_url=url, price_in=1.0, price_out=1.0)
        + _asked(url, "generator", seed=5),
    )
    of.does("ragval", "questions", of.track, "--per-block", "2")
    of.says("ragval", "answers", of.track, "--estimate")
    of.does("ragval", "answers", of.track)
    asked = [json.loads(line) for line in (of.track / "bank.questions.jsonl").read_text().splitlines()]
    for run in ("mine", "yours"):
        of.jsonl(
            f"runs/{run}.jsonl",
            *(
                {"question_id": row["question_id"], "answer": f"{run} says so of {row['block_id']}."}
                for row in asked[: 6 if run == "mine" else 9]
            ),
        )
    of.says("ragval", "judge", of.track, "--estimate")
    of.does("ragval", "judge", of.track)
    of.made()
    of.each(of.track, "status", "leaderboard")
    of.says("ragval", "report", of.track / "out" / "ragval" / "judged.jsonl")
    of.again()


@track
def exam(of: Recorder) -> None:
    """A multiple-choice exam: filter, examinees behind a server, IRT of the matrix, improvement."""
    url = of.server(material.answering)
    rows, asks = [], ("What", "Which", "How", "Why")
    for n in range(12):
        choices = (f"right answer {n} of pumps", *(f"wrong {word} {n}" for word in ("salt", "iron", "olive")))
        rows.append(
            {
                "question_id": f"x{n}",
                "question": f"{asks[n % 4]} is it that part {n} of such a heat pump does in winter?"
                if n != 7
                else "According to the documentation, what does part 7 of such a heat pump do?",
                "choices": choices,
                "correct_answer": 0,
                "doc_id": f"d{n}",
                "documentation": f"Passage {n} about right answer {n} of pumps and their coil.",
            }
        )
    of.track.mkdir()
    source = of.track / "exam.jsonl"
    from trecexam.extensions.exams.exam_file import ExamQuestion

    fields = ("question_id", "question", "choices", "correct_answer", "doc_id", "documentation")
    questions = [ExamQuestion(*(row[name] for name in fields), rest={}) for row in rows]
    source.write_text("".join(json.dumps(question.row()) + "\n" for question in questions))
    kept, taken, fitted = of.root / "filtered", of.root / "taken", of.root / "fitted"
    of.says("exam", "filter", source, "-o", kept)
    for model in ("small", "middle", "large"):
        words = ("--model", model, "--base-url", url, "--retriever", "closed-book", "--retriever", "oracle")
        of.says("exam", "score", kept / "kept.jsonl", "-o", taken, *words)
    large = ("--model", "large", "--base-url", url, "--retriever", "oracle")
    of.says("exam", "score", kept / "kept.jsonl", "-o", taken, *large)
    made_of = ("--components", taken / "components.tsv", "--groups", kept / "groups.tsv")
    of.says("exam", "fit", taken / "matrix.tsv", "-o", fitted, *made_of)
    of.says(
        "exam", "improve", taken / "matrix.tsv", "-o", of.root / "better", "--steps", "1", "--drop", "0.25"
    )
    of.made(kept, taken, fitted, of.root / "better")


@track
def learn(of: Recorder) -> None:
    """Labels that judgments teach; and the leaderboard by them.

    Texts are encoded by their words: a model's vectors in bfloat16 differ from machine to machine, and what
    is learned of them in the third digit.
    """
    of.patch(learned_pool, "track_encoder", lambda track: WordEncoder())
    _ranked(of, more="[scores]\nmin_relevant = 2\n")
    of.jsonl("bank.questions.jsonl", *material.questions(1))
    of.does("learn", of.track)
    of.made()
    of.says("leaderboard", of.track, "--learned")
    of.does("fill", of.track, "--by", "learned", "-o", of.root / "filled.qrels")
    of.does("fill", of.track, "-o", of.root / "filled.qrels")
    of.made()


@track
def fill(of: Recorder) -> None:
    """Holes graded by a model behind a server with UMBRELA's prompt, and merged."""
    url = of.server(material.answering)
    _ranked(of, grader=_asked(url, prompt="UMBRELA"))
    of.does("fill", of.track, "-o", of.root / "f" / "a.qrels")
    identity = ["--map", "identity"]
    for words in (["--dry-run"], ["-o", of.root / "f" / "a.qrels"], ["-o", of.root / "f" / "a.qrels"]):
        of.does("fill", of.track, *words, *identity)
    for name, words in {
        "map": ["--map", "2=1,3=2"],
        "unjudged": ["--as-unjudged", *identity],
    }.items():
        of.does("fill", of.track, "-o", of.root / "f" / f"{name}.qrels", *words)
    of.made(of.root / "f")
    of.does("watch", of.track, "--once")
    of.made()
    # Judged passages have grades now, so that a rule can be fitted.
    of.does("fill", of.track, "-o", of.root / "f" / "fitted.qrels")
    of.says("status", of.track)
    of.says("leaderboard", of.track)
    of.says("holes", of.track)
    of.says("agreement", of.track)
    of.says("correlate", of.track)
    of.says("simulate", "removal", of.track, "--repeats", "2", "--by", "label:1", "--by", "condensed")
    of.says("simulate", "runs", of.track, "--summary")
    of.again()


@track
def judging(of: Recorder) -> None:
    """A campaign: plan, judgments of two people, agreement, export, import; they count."""
    url = of.server(material.answering)
    _ranked(of, judged=False, grader=_asked(url), more='[judging]\nscale = ["no", "somewhat", "yes"]\n')
    of.jsonl("bank.questions.jsonl", *material.questions(2))
    of.says("judge", "plan", of.track, "--assessors", "ada,bob", "--overlap", "50%", "--budget", "24")
    of.does("watch", of.track, "--once")
    of.made()
    plan = [
        line.split("\t")
        for line in (of.track / "judging.tsv").read_text().splitlines()
        if not line.startswith("#")
    ]
    tasks = [dict(zip(plan[0], line, strict=True)) for line in plan[1:]]
    table = ["query_id\tdoc_id\titem_id\tassessor\trating\tstatus\tseconds\ttime\tnote\twhy"]
    for task in tasks:
        for who in (task.get("assessors") or task.get("assessor") or "ada,bob").replace(" ", ",").split(","):
            rating = (
                material.hashed(who[0] if material.hashed(task["doc_id"]) % 3 == 0 else "", task["doc_id"])
                % 3
            )
            table.append(
                f"{task['query_id']}\t{task['doc_id']}\t\t{who}\t{rating}\trated\t2.0\t2026-01-01T00:00:00Z\t\tjudged"
            )
    (of.root / "table.tsv").write_text("\n".join(table) + "\n")
    of.does("judge", "import", of.track, of.root / "table.tsv")
    of.says("judge", "agreement", of.track)
    of.says("judge", "agreement", of.track, "--disagreements")
    of.does("judge", "export", of.track, "-o", of.root / "judged")
    of.does("judge", "import", of.track, of.root / "judged" / "judgments.tsv")
    of.made(of.root / "judged")
    of.does("watch", of.track, "--once")
    of.made()
    of.each(of.track, "status", "leaderboard", "agreement", "holes", "override --list")
    of.again()


@track
def dl19(of: Recorder) -> None:
    """TREC DL 2019, recorded: where the data is here."""
    data = outside("dl19")
    files = {
        "--queries": "queries.tsv",
        "--bank": "bank.questions.jsonl.gz",
        "--passages": "passages.jsonl.gz",
        "--qrels": "qrels.txt",
        "--runs": "runs",
        "--recorded": "graded.flan-t5-large.jsonl.gz",
    }
    of.does("init", of.track, *(part for option, name in files.items() for part in (option, data / name)))
    shutil.copy(data / "official_leaderboard.json", of.track)
    of.does("watch", of.track, "--once")
    of.says("status", of.track)
    of.says("leaderboard", of.track)
    of.says("correlate", of.track)
    of.says("agreement", of.track)
    of.says("holes", of.track)
