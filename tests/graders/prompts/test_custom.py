from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from outside import outside
from support import ask

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.graders.prompts import load_prompt, named, published

CELL = ask("some passage", "what is it?")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_jinja_prompt_can_use_conditions_and_its_slots_are_detected(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.jinja", "{% if query %}About {{ query }}: {% endif %}{{ nugget }}? {{ context }}\n"
    )
    prompt = load_prompt(path)
    cell = ask("a {{ passage }}", "a fact", kind="nugget")
    assert prompt.asks == "nugget"
    assert prompt.text("birds", cell.item, cell.text) == "About birds: a fact? a {{ passage }}"
    assert prompt.text("", cell.item, cell.text) == "a fact? a {{ passage }}"


ONE = "template = '{context} {question}'\n"
LIST = "template = '{nuggets} {context}'\nparser = 'assignment'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("template = 'x\n", r"p\.toml:1: this prompt is not valid TOML"),
        ("name = 'x'\n", "`template`: is missing; a prompt has template, name"),
        (f"{ONE}colour = 1\n", "`colour`: no such setting;"),
        (f"{ONE}parser = 'maybe'\n", "`parser`: must be 'rating'"),
        (f"{ONE}max_rating = 9\n", "`max_rating`"),
        ("template = '{question}'\n", "no place for the passage"),
        ("template = '{context}'\n", "asks about nothing"),
        (f"{ONE}answers = {{ yes = 7 }}\n", r"'yes' has no rating on the scale 0\.\.5"),
        (f"{ONE}max_rating = 2\nmin_rating = 4\n", "min_rating"),
        ("template = '{context} {querry}'\n", "unknown slot 'querry'; a prompt has question"),
        ("template = '{context} {question} {nugget}'\n", "a question and a nugget at once"),
        ("template = '{{context}} {{question}}'\n", "double braces are Jinja's"),
        (f"{ONE}answers = {{ yes = true }}\n", "`answers.yes`"),
        ("template = '{nuggets} {context}'\n", 'a .toml file with `parser = "assignment"`'),
        ("template = '{nugget} {context}'\nparser = 'assignment'\n", "a list of nuggets needs {nuggets}"),
        (f"{ONE}group = 5\n", "`group`, {num_nuggets} and that parser are for such a list"),
        ("template = '{nuggets} {nugget} {context}'\nparser = 'assignment'\n", "take {nugget} out"),
        (f"{LIST}asks = 'query'\n", "take `asks` out"),
        (f"{LIST}answers = {{ 'a, b' = 1 }}\n", "'a, b' cannot be told from others in a list"),
        (f"{LIST}answers = {{}}\n", "`answers`: a list needs labels"),
    ],
)
def test_an_invalid_prompt_is_a_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    check_refused(written(tmp_path / "p.toml", text), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ question }}", "write {{ context }} into it"),
        ("{{ question }} {{ context }} {{ lipsum() }}", "cannot be filled in: 'lipsum' is undefined"),
        ("a\n{{ question }", r"p\.jinja:2: this prompt is not valid Jinja"),
        ("{{ question }} {{ context }} {{ title }}", "unknown slot 'title'; a prompt has question"),
        ("{{ question.__class__.__mro__ }} {{ context }}", "cannot be filled in"),
        ("{% for x in range(10**9) %}a{% endfor %}{{ question }} {{ context }}", "cannot be filled in"),
    ],
)
def test_an_invalid_jinja_prompt_is_a_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    check_refused(written(tmp_path / "p.jinja", text), message)


def check_refused(path: Path, message: str) -> None:
    with pytest.raises(GraderError, match=message) as caught:
        load_prompt(path)
    assert "\n" not in str(caught.value)
    assert path.name in str(caught.value)


def test_permitted_answers_map_to_their_ratings_with_any_parser(tmp_path: Path) -> None:
    text = "template = '{question} {context}'\nanswers = { Good = 5, relevant = 3, No = 2 }\n"
    prompt = load_prompt(written(tmp_path / "p.toml", text))
    for answer, rating in (("Good", 5), ("relevant", 3), ("No", 2)):
        assert prompt.read(answer, CELL.item) == rating
        assert prompt.read(answer, CELL.item, "workbench") == rating
    assert prompt.read(" good. ", CELL.item) == 5
    assert prompt.read("$4", CELL.item) is None


def test_a_prompt_with_the_query_and_an_item_needs_the_query_text(tmp_path: Path) -> None:
    for name, text in (
        ("p.toml", "template = '{query} {question} {context}'"),
        ("p.jinja", "{{ query }} {{ question }} {{ context }}"),
    ):
        assert load_prompt(written(tmp_path / name, text)).needs_query_text
    assert not load_prompt(written(tmp_path / "q.toml", "template = '{query} {context}'")).needs_query_text


def test_a_toml_prompt_can_ask_about_several_nuggets_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.toml",
        "template = '{num_nuggets} of {query}: {nuggets} in {context}?'\nparser = 'assignment'\n",
    )
    prompt = load_prompt(path)
    assert (prompt.asks, prompt.group, prompt.system, prompt.needs_query_text) == ("nugget", 10, "", True)
    assert prompt.answers == (("support", 5), ("partial_support", 3), ("not_support", 0))
    items = [ask("", text, kind="nugget").item for text in ("is {context}", "two")]
    assert prompt.list_text("birds", items, "P") == "2 of birds: ['is {context}', 'two'] in P?"
    path.write_text(
        f"{path.read_text()}group = 4\nsystem = 'You label.'\nmax_rating = 2\n"
        "answers = { 'In Full' = 2, 'In part' = 1, No = 0 }\n"
    )
    other = load_prompt(path)
    assert (other.group, other.system, other.max_rating, other.min_rating) == (4, "You label.", 2, 1)
    read = [other.read(label, items[0]) for label in ("in full", "In_Part", "no.", "maybe")]
    assert read == [2, 1, 0, None]
    assert other.identity() != prompt.identity()


def test_a_prompt_file_that_is_missing_or_not_text_is_reported(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="no such prompt file"):
        named("none.toml", tmp_path)
    (tmp_path / "p.jinja").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(GraderError, match="cannot be read"):
        load_prompt(tmp_path / "p.jinja")


# The published prompts, byte for byte, as in the papers and the released files.


#: First 40 digits of the sha256, also of texts that only papers print; others are compared with the released
#: texts where these are here.
DIGESTS = {
    "NuggetSelfRatedPrompt": "3d6867af100826e0f37b2b1029cc886fff2584fd",
    "NuggetExtractionPrompt": "ec21666c77fe2b47f0710d793cc8a4fb9f60f8a9",
    "AnswerVerification": "b26126a82487e2ff6e4bfb86374190d6b1a63402",
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


def test_the_passage_comes_first_only_if_the_prompt_allows() -> None:
    moved = published()["NuggetSelfRatedPrompt"].passage_first()
    assert moved.template.startswith("Context: {context}\nGiven the context")
    assert moved.template.endswith("Key Fact: {nugget}")
    assert moved.identity() != published()["NuggetSelfRatedPrompt"].identity()
    assert published()["Sun"].passage_first() == published()["Sun"]
