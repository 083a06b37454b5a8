"""`trecexam exam score`: examinees of models, retrievers and examples, and their response matrix."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from exams import CHOICES, question, write_exam
from outside import outside
from scripted_server import KEY, Exchange, serving
from support import write_run
from tiny_models import save_gpt2, save_llama

from trecexam.cli.main import run
from trecexam.config import GeneratorSection
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.choosing import ChoosingWriter, tokens_of
from trecexam.extensions.exams.choosing import examinee as examinee_of
from trecexam.extensions.exams.exam_file import ExamQuestion, read_exam
from trecexam.extensions.exams.matrices import add_examinee
from trecexam.extensions.exams.questions.asking import examples_for, prompt
from trecexam.extensions.exams.questions.reading import read_choice
from trecexam.extensions.exams.scoring import (
    Examinee,
    ExamSetup,
    exam_prompts,
    retrievers,
    taking_job,
    texts_of,
)
from trecexam.extensions.local_models.causal import CausalBackend
from trecexam.files.track_lock import exclusive_lock

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("httpx2")


STEMS = ("What is moved by a pump?", "What is on the coil in winter?", "Which power is used?")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("models") / "tiny", chat=False)


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    made = [question(n, stem, CHOICES, n, f"Passage {n}.") for n, stem in enumerate(STEMS)]
    return write_exam(tmp_path / "exam.jsonl", made)


def score(exam: Path, model: object, *more: object) -> int:
    """Runs `exam score` into out/ beside the exam."""
    words = map(str, (exam, "-o", exam.parent / "out", "--model", model, *more))
    return run(["exam", "score", *words])


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_each_retriever_with_each_number_of_examples_is_an_examinee(
    exam: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranking = {"x0": ["d1", "gone"], "x1": ["d2"]}
    bm25 = write_run(exam.parent / "b.run", ranking, "bm25")
    out = exam.parent / "out"
    names = ("--retriever", "closed-book", "--retriever", "oracle", "--retriever", bm25)
    assert score(exam, model, *names, "--examples", 0, "--examples", 2) == 0
    said = capsys.readouterr()
    matrix = table(out / "matrix.tsv")
    assert matrix[0] == ["examinee", "x0", "x1", "x2"]
    assert [row[0] for row in matrix[1:]] == [
        f"tiny+{retriever}+{number}" for retriever in ("closed-book", "oracle", "bm25") for number in (0, 2)
    ]
    assert all(value in {"0", "1"} for row in matrix[1:] for value in row[1:])
    components = table(out / "components.tsv")
    assert components[0] == ["examinee", "model", "retriever", "examples"]
    assert components[2] == ["tiny+closed-book+2", "tiny", "closed-book", "2"]
    assert "tiny+bm25+0: left out, as without a text: 1 retrieved document" in said.err
    assert "tiny+bm25+0: answered closed-book, as not in the run: 1 question" in said.err
    # An examinee chooses the candidate with the highest score of a plain forward pass.
    settings = GeneratorSection.model_validate({"name": "causal", "model": str(model), "dtype": "float32"})
    questions, oracle = tuple(read_exam(exam)), retrievers(["oracle"])
    setup = ExamSetup("tiny", questions, oracle[0], 0, texts_of(None, oracle, questions))
    source = examinee_of(settings, out)
    taken = taking_job(source, setup).ask()
    among = [f"{x}) {c}" for x, c in zip("ABCD", CHOICES, strict=True)]
    of_oracle = next(row for row in matrix if row[0] == "tiny+oracle+0")[1:]
    prompts = exam_prompts(source, setup)
    for number, (question_id, reply) in enumerate(prompts.answered()):
        scores = log_likelihoods_by_forward_pass(
            model, prompt(questions[number], f"Passage {number}."), among
        )
        logs = json.loads(reply.text)
        assert [log / len(each) for log, each in zip(logs, among, strict=True)] == pytest.approx(scores)
        assert taken.answers[question_id] == scores.index(max(scores))
        assert of_oracle[number] == str(int(scores.index(max(scores)) == questions[number].correct))
    printed = [line.split("\t") for line in said.out.splitlines()]
    assert printed[0] == ["examinee", "model", "retriever", "examples", "answered", "accuracy"]
    for row, shown in zip(matrix[1:], printed[1:], strict=True):
        assert float(shown[-1]) == pytest.approx(sum(map(int, row[1:])) / 3, abs=1e-6)


def log_likelihoods_by_forward_pass(model: Path, asked: str, answers: list[str]) -> list[float]:
    """Log-likelihoods by length in characters."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForCausalLM.from_pretrained(model).eval()
    found = []
    for answer in answers:
        before = tokenizer(asked)["input_ids"]
        after = tokenizer(f" {answer}", add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([before + after])).logits[0]
        steps = torch.log_softmax(logits.float(), dim=-1)
        told = sum(float(steps[len(before) - 1 + n, token]) for n, token in enumerate(after))
        found.append(told / len(answer))
    return found


def test_other_examinees_are_kept_and_the_same_one_is_replaced(exam: Path, model: Path) -> None:
    matrix = exam.parent / "out" / "matrix.tsv"
    assert score(exam, model) == 0
    before = table(matrix)
    assert score(exam, shutil.copytree(model, exam.parent / "other")) == 0
    assert score(exam, model) == 0
    found = {row[0]: row for row in table(matrix)}
    assert list(found) == ["examinee", "other+closed-book+0", "tiny+closed-book+0"]
    assert found["tiny+closed-book+0"] == before[1]


def test_a_local_model_answers_each_question_once_even_if_stopped_halfway(
    exam: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    left = [1]

    def written(self: ChoosingWriter, jobs: Sequence[Any]) -> Any:
        if not left[0]:
            raise TrecexamError("the power is gone")
        left[0] -= 1
        asked.append(len(jobs))
        return texts(self, jobs)

    texts = ChoosingWriter._texts
    monkeypatch.setattr(ChoosingWriter, "_texts", written)
    assert score(exam, model) == 2
    left[0] = 9
    for _ in range(2):
        assert score(exam, model) == 0
        assert len(asked) == len(STEMS)


def test_a_question_that_fills_the_context_is_asked_without_its_passage(
    exam: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    most = AutoConfig.from_pretrained(model).max_position_embeddings
    longest = max(len(tokenizer(f" {x}) {c}")["input_ids"]) for x, c in zip("ABCD", CHOICES, strict=True))
    length = most
    while len(tokenizer(prompt(question(0, "z" * length)))["input_ids"]) > most - longest - 1:
        length -= 1
    write_exam(exam, [question(0, "z" * length)])
    assert score(exam, model, "--retriever", "oracle") == 0
    assert "documents cut to fit the model: 1 question" in capsys.readouterr().err
    write_exam(exam, [question(0, "z" * (length + 40))])
    assert score(exam, model, "-o", exam.parent / "other") == 2
    assert "use fewer --examples, or leave out this question" in capsys.readouterr().err


def test_the_top_documents_of_a_run_are_taken_from_the_corpus_or_the_exam(exam: Path) -> None:
    ranking = {
        "x0": ["c1", "d2", "d1", "c2"],
        "x1": ["c2", "c1", "d2", "d0"],
        "x2": ["d1", "d0", "d2", "c1"],
    }
    bm25 = write_run(exam.parent / "b.run", ranking, "bm25")
    corpus = exam.parent / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"docid": f"c{n}", "text": f"Corpus {n}."}) + "\n" for n in (1, 2)))
    with serving(replying) as server:
        more = ("--base-url", server.url, "--retriever", bm25, "--passages", corpus)
        assert score(exam, "big", *more) == 0
    asked = "".join(body["messages"][-1]["content"] for body in server.bodies)
    for shown in (
        "Corpus 1.\nPassage 2.\nPassage 1.",
        "Corpus 2.\nCorpus 1.\nPassage 2.",
        "Passage 1.\nPassage 0.\nPassage 2.",
    ):
        assert f"Retrieved Documents:\n{shown}\n\nCandidates:" in asked


def replying(exchange: Exchange) -> None:
    said = {STEMS[0]: "A", STEMS[1]: "The correct answer is C.", STEMS[2]: "I do not know."}
    exchange.say(next((answer for stem, answer in said.items() if stem in exchange.prompt), "x"))


def test_a_server_is_asked_for_each_answer_letter_once(
    exam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = exam.parent / "out"
    with serving(replying) as server:
        start = (exam, "org/big", "--base-url", server.url, "--key-env", "TEST_KEY")
        assert score(*start) == 0
        assert (out / "matrix.tsv").read_text() == "examinee\tx0\tx1\tx2\nbig+closed-book+0\t1\t0\t0\n"
        assert "no candidate named, counted as wrong: 1 answer" in capsys.readouterr().err
        assert score(*start) == 0
        assert len(server.bodies) == 3
        assert score(*start, "--retriever", "oracle") == 0
        assert len(server.bodies) == 6
    assert any("Context:Passage 1." in body["messages"][-1]["content"] for body in server.bodies)
    assert KEY not in "".join(path.read_text() for path in out.iterdir())


def test_questions_without_an_answer_are_empty_not_wrong(exam: Path) -> None:
    def failing(exchange: Exchange) -> None:
        if STEMS[1] in exchange.prompt:
            exchange.fail(500)
        else:
            exchange.say("A")

    with serving(failing) as server:
        assert score(exam, "big", "--base-url", server.url) == 1
    assert table(exam.parent / "out" / "matrix.tsv")[1] == ["big+closed-book+0", "1", "", "0"]


def test_probabilities_that_are_not_numbers_are_an_error(
    exam: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    broken = AutoModelForCausalLM.from_pretrained(model)
    with torch.no_grad():
        broken.lm_head.weight.copy_(broken.lm_head.weight.sign() * 3e38)
    broken.save_pretrained(tmp_path / "huge")
    AutoTokenizer.from_pretrained(model).save_pretrained(tmp_path / "huge")
    assert score(exam, tmp_path / "huge") == 2
    assert "no finite probabilities" in capsys.readouterr().err
    assert not (exam.parent / "out" / "matrix.tsv").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--model", "nowhere/at-all-x/y"], "one behind a server needs its --base-url"),
        (["--model", "MODEL", "--retriever", "no.run"], "no.run: no such file"),
        (["--model", "MODEL", "--examples", "3"], "3 examples need an exam of 4 questions or more"),
        (["--model", "big", "--base-url", "nonsense"], "--base-url: give an address such as"),
        (["--model", "MODEL", "--retriever", "OTHER"], "its query ids must be question ids"),
        (["--model", "MODEL", "--retriever", "TEXTLESS"], "give the corpus with --passages"),
    ],
)
def test_invalid_requests_are_a_one_line_error(
    exam: Path, model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    other = write_run(exam.parent / "other.run", {"q1": ["d0"]})
    textless = write_run(exam.parent / "textless.run", {"x0": ["e0"]})
    given = {"MODEL": str(model), "OTHER": str(other), "TEXTLESS": str(textless)}
    arguments = [given.get(each, each) for each in arguments]
    assert run(["exam", "score", str(exam), "-o", str(exam.parent / "out"), *arguments]) == 2
    assert reason in capsys.readouterr().err


def test_prompts_equal_the_published_reference_file() -> None:
    published = outside("prompts/mcq-answering").read_text().splitlines()
    told = {line.partition(":")[0]: line.partition(":")[2].strip().replace("\\n", "\n") for line in published}
    made = question(0, "Why?", ["w", "x", "y", "z"])
    choices = "A) w\nB) x\nC) y\nD) z"
    kinds = {"closed book": ("", "oracle"), "oracle": ("P.", "oracle"), "retrieved": ("P.", "retrieved")}
    for name, (context, kind) in kinds.items():
        expected = told[name].replace("{question}", "Why?").replace("{documentation}", "P.")
        expected = expected.replace("{choices, one a line}", choices).replace("{choices}", choices)
        expected = expected.replace("{the first n retrieved documents}", "P.")
        assert prompt(made, context, kind) == expected


@pytest.mark.parametrize("number", [0, 1, 2])
def test_no_question_is_used_as_its_own_example(number: int) -> None:
    made = [question(place) for place in range(6)]
    chosen = examples_for(made, number, 3)
    for each in made:
        assert len(chosen(each)) == number
        assert each not in chosen(each)


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("B", 1),
        ("(b) because", 1),
        (" B) Fresh water for taps", 1),
        ("Fresh water for taps.", 1),
        ("**B**", 1),
        ("I think so.\nThe answer is B.", 1),
        ("<think>A?</think>\n\nB", 1),
        ("A pump", None),
        ("because", None),
        ("B or C", None),
        ("", None),
        ("E", None),
    ],
)
def test_an_answer_is_read_as_a_candidate_or_not_at_all(answer: str, place: int | None) -> None:
    assert read_choice(answer, CHOICES) == place
    assert read_choice(answer, CHOICES, cut=True) is None, "a reply that ends early is unparsed"


def examinee(questions: Sequence[ExamQuestion], chosen: int, **components: str) -> Examinee:
    made_of = {"model": "m", "retriever": "oracle", "examples": "0", **components}
    return Examinee(made_of, {each.question_id: chosen for each in questions})


@pytest.mark.parametrize("line", ["null", "examinee\tx0", "examinee\tx0\nm\t1"])
def test_foreign_files_in_the_folder_are_left_unchanged(tmp_path: Path, line: str) -> None:
    (tmp_path / "matrix.tsv").write_text(f"{line}\n")
    with pytest.raises(TrecexamError, match="give -o another folder"):
        add_examinee(examinee([question()], 0), [question()], tmp_path)
    assert (tmp_path / "matrix.tsv").read_text() == f"{line}\n"
    assert not (tmp_path / "components.tsv").exists()


def test_examinees_with_equal_names_and_different_parts_are_kept_apart(tmp_path: Path) -> None:
    made = [question()]
    add_examinee(examinee(made, 0, model="m+bm25", retriever="rm3"), made, tmp_path)
    with pytest.raises(TrecexamError, match=r"another examinee called 'm\+bm25\+rm3\+0'"):
        add_examinee(examinee(made, 0, model="m", retriever="bm25+rm3"), made, tmp_path)


def test_two_concurrent_processes_lose_no_examinee(tmp_path: Path) -> None:
    made = [question()]
    with exclusive_lock(tmp_path / ".lock"):
        other = Thread(target=add_examinee, args=(examinee(made, 0, model="n"), made, tmp_path))
        other.start()
        other.join(0.2)
        assert other.is_alive()
        assert not (tmp_path / "matrix.tsv").exists()
    other.join(10)
    assert (tmp_path / "matrix.tsv").exists()


# log P(continuation | prompt) against a plain forward pass of each pair.


PROMPTS = ["What is the number of the passage about q1?", "Is it", "Question 3 of 5: " * 12]
TEXTS = [
    ["A) a", "B) the passage", "C) 5", "D) question number of q2 q3"],
    ["Yes", "No"],
    ["A", "B", "C", "D"],
]


@pytest.fixture(scope="module", params=["gpt2", "llama", "chat"])
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CausalBackend:
    folder = tmp_path_factory.mktemp(request.param)
    saved = save_gpt2(folder) if request.param == "gpt2" else save_llama(folder, chat=request.param == "chat")
    return CausalBackend(saved, "cpu", "float32")


def log_likelihood(backend: CausalBackend, prompt: list[int], tokens: list[int]) -> float:
    """By one forward pass."""
    row = torch.tensor([[*prompt, *tokens]])
    with torch.inference_mode():
        steps = torch.log_softmax(backend.model(input_ids=row).logits[0].double(), dim=-1)
    start = len(prompt) - 1
    return sum(float(steps[start + place, token]) for place, token in enumerate(tokens))


@pytest.mark.parametrize("way", ["tree", "cache", "rows"])
def test_log_probabilities_equal_a_plain_forward_pass(
    backend: CausalBackend, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.scorer, "method_for", lambda length: way)
    for given, texts in zip(backend.tokens.encode(PROMPTS), TEXTS, strict=True):
        tokens = tokens_of(backend, texts)
        expected = [log_likelihood(backend, given, continuation) for continuation in tokens]
        assert backend.scorer.continued(given, tokens) == pytest.approx(expected, abs=1e-3)


def test_prompts_equal_the_published_ones() -> None:
    made = question(0, "Why?", ["w", "x", "y", "z"], 2)
    tail = "Candidates:\nA) w\nB) x\nC) y\nD) z\n\n###Assistant: Correct answer"
    assert prompt(made) == f"###Human: Question: Why?\n\n{tail}"
    assert prompt(made, "P.") == f"###Human: Question: Why?\n\nContext:P.\n\n{tail}"
    assert (
        prompt(made, "P.", "retrieved") == f"###Human: Question: Why?\n\nRetrieved Documents:\nP.\n\n{tail}"
    )
    assert prompt(made, examples=[made]) == f"{prompt(made)} C) y\n\n{prompt(made)}"
