"""A small data set in the form of TREC AutoJudge, and its commands run in this process."""

from __future__ import annotations

import json
from pathlib import Path

from nltk_folder import with_nltk_data

TOPICS = {
    "leaf": "why leaves change color in fall",
    "bee": "how bees make honey",
    "well": "how deep wells are dug",
}
#: doc_id -> its text, which is in the reports that cite it.
DOCUMENTS = {
    "Chlorophyll": "Chlorophyll is a green pigment that absorbs light. Trees stop making it in autumn.",
    "Carotenoid": "Carotenoids are yellow and orange pigments that are in leaves all year.",
    "Nectar": "Bees collect nectar from flowers and carry it to the hive in a stomach of its own.",
    "Honey": "In the hive water evaporates from nectar until it is thick honey, which wax seals.",
    "Well": "A well is dug or drilled until it reaches ground water; most are ten to ninety metres deep.",
}
#: run -> topic -> (sentence, what it cites).
RUNS = {
    "run1": {
        "leaf": [
            ("Trees stop making chlorophyll in autumn.", ["Chlorophyll"]),
            ("Then yellow shows.", ["Carotenoid"]),
        ],
        "bee": [
            ("Bees carry nectar to the hive.", ["Nectar"]),
            ("There water evaporates from it.", ["Honey"]),
        ],
        "well": [("Wells reach ground water.", ["Well"])],
    },
    "run2": {
        "leaf": [("Leaves are painted at night.", ["Carotenoid"]), ("Nobody knows why.", [])],
        "bee": [("Bees make honey of nectar.", ["Honey", "Nectar"])],
        "well": [("Wells are a hundred kilometres deep.", ["Well"]), ("They are dug by moles.", ["Nectar"])],
    },
    # It has nothing on one topic.
    "run3": {
        "leaf": [("Chlorophyll is green.", ["Chlorophyll"])],
        "bee": [("Wax seals the honey.", ["Honey"]), ("Bees are insects.", [])],
    },
}


def lay_out_autojudge(folder: Path) -> Path:
    """Writes topics.jsonl, runs/ and truth.txt, an ir_measures leaderboard with a header."""
    (folder / "runs").mkdir(parents=True)
    topics = [
        {"request_id": topic, "title": title, "problem_statement": f"I ask {title}."}
        for topic, title in TOPICS.items()
    ]
    (folder / "topics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in topics))
    truth = ["run_id\tquery_id\tmeasure\tvalue"]
    for number, (run, answers) in enumerate(RUNS.items()):
        rows = []
        for topic, sentences in answers.items():
            cited = dict.fromkeys(doc for _, docs in sentences for doc in docs)
            rows.append(
                {
                    "metadata": {"team_id": "team", "run_id": run, "topic_id": topic},
                    "responses": [{"text": text, "citations": docs} for text, docs in sentences],
                    "documents": {doc: {"id": doc, "text": DOCUMENTS[doc], "title": doc} for doc in cited},
                }
            )
        (folder / "runs" / f"{run}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        values = [0.9 - 0.2 * number - 0.05 * at for at in range(len(TOPICS))]
        truth += [
            f"{run}\t{topic}\tRELEVANCE\t{value:.2f}" for topic, value in zip(TOPICS, values, strict=True)
        ]
        truth.append(f"{run}\tall\tRELEVANCE\t{sum(values) / len(values):.4f}")
    (folder / "truth.txt").write_text("\n".join(truth) + "\n")
    return folder


def auto_judge(*arguments: str | Path, status: int = 0) -> str:
    """The output of `auto-judge` with these arguments.

    Raises:
        AssertionError: it ends with another exit status.
    """
    from click.testing import CliRunner

    with with_nltk_data():
        from autojudge_base.cli import main

        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done.output
