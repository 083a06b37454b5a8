"""The published prompts, byte for byte, as in the papers and the released files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from outside import outside
from support import ask

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.graders.prompts import named, published

NUGGET_RATING = """\
Given the context, evaluate the coverage of the specified key fact (nugget). Use this scale:
- 5: Detailed, clear coverage.
- 4: Sufficient coverage, minor omissions.
- 3: Mentioned, some inaccuracies or lacks detail.
- 2: Briefly mentioned, significant omissions or inaccuracies.
- 1: Minimally mentioned, largely inaccurate.
- 0: Not mentioned at all.
Key Fact: {nugget} Context: {context}"""
NUGGET_EXTRACTION = (
    "Extract the passage from the text that best relates to the key fact (nugget), ensuring relevance and "
    "clarity. Key Fact: {nugget} Context: {context}"
)
VERIFICATION = (
    'For the question "{question}" the correct answer is "{correct_answer}". '
    'Is "{answer}" an equally correct response to this question? Answer yes or no.'
)
PRINTED = {
    "NuggetSelfRatedPrompt": NUGGET_RATING,
    "NuggetExtractionPrompt": NUGGET_EXTRACTION,
    "AnswerVerification": VERIFICATION,
}
#: First 40 digits of the sha256 of others, which are compared with the released texts where these are here.
DIGESTS = {
    "QuestionSelfRatedUnanswerablePromptWithChoices": "60bc0484a8684d070b42397b03e16cb4ae36d23c",
    "QuestionCompleteConciseUnanswerablePromptWithChoices": "9fbeedd3aac7dd8845b502858995c2b8a6c4c5c3",
    "QuestionCompleteConcisePromptWithAnswerKey2": "9fbeedd3aac7dd8845b502858995c2b8a6c4c5c3",
    "QuestionCompleteConcisePromptWithT5VerifiedAnswerKey2": "9fbeedd3aac7dd8845b502858995c2b8a6c4c5c3",
    "Sun": "3106754cfc8bc00aac006cf0684dd7435bb7fcd2",
    "Sun_few": "60bb06788ee24ba545412b4e16bcfe52ba706027",
    "FagB": "76ec12894f373aa07a8f3493ede8d7b25c2f1608",
    "FagB_few": "489a74707f0669ba64d582f7dcc0eb8df57deae6",
    "Thomas": "844215bdc0ff6ae08bdc73407673110a3648f0e3",
    "HELM": "a7229118382c62653c958326ed70f2e18a615755",
    "UMBRELA": "c92537a4f97293dfe1fd5f3dccc3f7dea44e3ace",
}
RELEASED = {
    "Sun": "Sun",
    "Sun_few": "Sun-few",
    "FagB": "Fag",
    "FagB_few": "Fag-few",
    "Thomas": "Thom",
    "HELM": "HELM",
}


def released(file: str) -> str:
    return outside(f"prompts/{file}").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PRINTED)
def test_a_prompt_equals_the_printed_one_byte_for_byte(name: str) -> None:
    assert published()[name].template.encode() == PRINTED[name].encode()


@pytest.mark.parametrize("name", DIGESTS)
def test_a_prompt_is_unchanged_byte_for_byte(name: str) -> None:
    assert hashlib.sha256(published()[name].template.encode()).hexdigest()[:40] == DIGESTS[name]


@pytest.mark.parametrize("name", RELEASED)
def test_a_direct_prompt_equals_the_released_one(name: str) -> None:
    text = released(RELEASED[name]).replace("{{QUERY}}", "{query}").replace("{{PASSAGE}}", "{passage}")
    if name == "Sun":
        # The released file has a tab before the first line end; the papers' table has none.
        text = text.replace('"No".\t\n', '"No".\n')
    assert published()[name].template == text.removesuffix("\n")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("QuestionSelfRatedUnanswerablePromptWithChoices", "exam-grading-self-rating"),
        ("QuestionCompleteConciseUnanswerablePromptWithChoices", "exam-grading-qa"),
    ],
)
def test_an_exam_prompt_equals_the_paper_except_for_line_breaks(name: str, file: str) -> None:
    assert published()[name].template.split() == released(file).split()


def test_the_umbrela_prompt_equals_the_released_user_message() -> None:
    text = released("umbrela-zeroshot-bing.yaml").split("prefix_user: |-\n")[1]
    lines = [line.removeprefix("  ") for line in text.rstrip("\n").split("\n")]
    assert published()["UMBRELA"].template == "\n".join(lines)


def test_the_support_prompt_equals_the_published_one() -> None:
    assert published()["TRECRAG2024Support"].template == released("support.txt").removesuffix("\n")


def test_every_prompt_names_its_source_its_scale_and_its_parser() -> None:
    for name, prompt in published().items():
        assert prompt.name == name
        assert re.search(r"\b20\d\d\b|arXiv", prompt.source)
        assert prompt.asks in {"question", "nugget", "statement", "query"}
        assert 1 <= prompt.min_rating <= prompt.max_rating
        ratings = [rating for _, rating in prompt.answers]
        scale = range(prompt.max_rating, -1, -1)
        # Assignments leave ratings out.
        assert ratings in ([], [*scale]) or (prompt.group > 1 and {5, 0} <= {*ratings} <= {*scale})


@pytest.mark.parametrize(
    ("name", "file"), [("NuggetAssign", "assigner"), ("NuggetAssign2", "assigner_2grade")]
)
def test_assignment_prompts_equal_those_of_nuggetizer_with_its_system_message(name: str, file: str) -> None:
    prompt, text = published()[name], released(f"nuggetizer/{file}.yaml")
    head, body = text.split("prefix_user: |-\n")
    assert prompt.template == "\n".join(line.removeprefix("  ") for line in body.split("\n"))
    assert f'system_message: "{prompt.system}"' in head
    nuggets = [Item("q", f"q/{n}", text, "nugget") for n, text in enumerate(["it's so", 'a "b"'])]
    filled = prompt.list_text("what?", nuggets, "A passage.")
    assert "each of the 2 nuggets either" in filled
    assert """Nugget List: ["it's so", 'a "b"']\n""" in filled
    assert "Search Query: what?\n  Passage: A passage.\n".replace("\n  ", "\n") in filled


@pytest.mark.parametrize("name", sorted(published()))
def test_slots_are_filled_once_and_texts_are_not_treated_as_templates(name: str) -> None:
    prompt = published()[name]
    cell = ask("passage with {question}, {query} & {{x}} \\1", "what of {context}?", kind=prompt.asks)
    text = prompt.text("the query {passage}", cell.item, cell.text)
    assert text.count("passage with {question}, {query} & {{x}} \\1") == 1
    assert "what of {context}?" in text
    assert prompt.answers == () or prompt.read(prompt.answers[0][0], cell.item) == prompt.max_rating


@pytest.mark.parametrize("name", sorted(published()))
def test_each_permitted_answer_is_parsed_as_its_rating(name: str) -> None:
    prompt = published()[name]
    item = Item("q1", "q1/1", "What is it?", prompt.asks)
    for answer, rating in prompt.answers:
        assert prompt.read(answer, item) == rating
        assert prompt.read(answer, item, "workbench") == rating


def test_an_unknown_prompt_suggests_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="did you mean 'Thomas'"):
        named("Thomass", tmp_path)
    with pytest.raises(GraderError, match="known are Question"):
        named("something else altogether", tmp_path)


def test_the_passage_comes_first_only_if_the_prompt_allows() -> None:
    moved = published()["NuggetSelfRatedPrompt"].passage_first()
    assert moved.template.startswith("Context: {context}\nGiven the context")
    assert moved.template.endswith("Key Fact: {nugget}")
    assert moved.identity() != published()["NuggetSelfRatedPrompt"].identity()
    assert published()["Sun"].passage_first() == published()["Sun"]
