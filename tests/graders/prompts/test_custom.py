from __future__ import annotations

from pathlib import Path

import pytest
from support import ask

from trecexam.errors import GraderError
from trecexam.graders.prompts import load_prompt, named

CELL = ask("some passage", "what is it?")
TOML = """
template = '''
Rate the passage for the question.
Question: {question}
Passage: {passage}'''
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_toml_prompt_has_default_scale_answers_and_name(tmp_path: Path) -> None:
    prompt = named("mine.toml", written(tmp_path / "mine.toml", TOML).parent)
    assert (prompt.name, prompt.asks, prompt.max_rating, prompt.min_rating) == ("mine", "question", 5, 4)
    assert [answer for answer, _ in prompt.answers] == ["5", "4", "3", "2", "1", "0"]
    assert prompt.text("q", CELL.item, CELL.text).endswith("Question: what is it?\nPassage: some passage")


def test_a_toml_prompt_can_set_answers_and_scale(tmp_path: Path) -> None:
    prompt = load_prompt(
        written(
            tmp_path / "three.toml",
            'template = "{query} {context}"\nname = "Three"\nversion = "2"\nmax_rating = 2\nmin_rating = 2\n'
            "answers = { good = 2, fair = 1, bad = 0 }\n",
        )
    )
    assert (prompt.name, prompt.version, prompt.asks) == ("Three", "2", "query")
    assert prompt.answers == (("good", 2), ("fair", 1), ("bad", 0))
    assert (prompt.max_rating, prompt.min_rating) == (2, 2)


def test_a_toml_prompt_can_ask_whether_an_answer_matches_the_key(tmp_path: Path) -> None:
    text = 'template = "{question} {correct_answer}, or {answer}?"\nparser = "yes_no"\n'
    prompt = load_prompt(written(tmp_path / "p.toml", text))
    assert (prompt.asks, prompt.needs_key, prompt.max_rating) == ("question", True, 1)
    cell = ask("Lyon", "Where?", key=["Paris", "in France"])
    assert prompt.text("", cell.item, cell.text) == "Where? Paris or in France, or Lyon?"


def test_a_jinja_prompt_can_use_conditions_and_its_slots_are_detected(tmp_path: Path) -> None:
    path = written(
        tmp_path / "p.jinja", "{% if query %}About {{ query }}: {% endif %}{{ nugget }}? {{ context }}\n"
    )
    prompt = load_prompt(path)
    cell = ask("a {{ passage }}", "a fact", kind="nugget")
    assert prompt.asks == "nugget"
    assert prompt.text("birds", cell.item, cell.text) == "About birds: a fact? a {{ passage }}"
    assert prompt.text("", cell.item, cell.text) == "a fact? a {{ passage }}"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.toml", "template = 'x\n", r"p\.toml:1: this prompt is not valid TOML"),
        ("p.toml", "name = 'x'\n", "`template`: is missing; a prompt has template, name"),
        ("p.toml", "template = '{question} {context}'\ncolour = 1\n", "`colour`: no such setting;"),
        ("p.toml", "template = '{question} {context}'\nparser = 'maybe'\n", "`parser`: must be 'rating'"),
        ("p.toml", "template = '{question} {context}'\nmax_rating = 9\n", "`max_rating`"),
        ("p.toml", "template = '{question}'\n", "no place for the passage"),
        ("p.toml", "template = '{context}'\n", "asks about nothing"),
        ("p.toml", "template = '{context} {question}'\nasks = 'query'\n", "asks about nothing"),
        (
            "p.toml",
            "template = '{context} {question}'\nanswers = { yes = 7 }\n",
            r"'yes' has no rating on the scale 0\.\.5",
        ),
        ("p.toml", "template = '{context} {question}'\nmax_rating = 2\nmin_rating = 4\n", "min_rating"),
        ("p.toml", "template = '{context} {querry}'\n", "unknown slot 'querry'; a prompt has question"),
        ("p.toml", "template = '{context} {question} {nugget}'\n", "a question and a nugget at once"),
        ("p.toml", "template = '{{context}} {{question}}'\n", "double braces are Jinja's"),
        ("p.toml", "template = '{context} {question}'\nanswers = { yes = true }\n", "`answers.yes`"),
        ("p.jinja", "{{ question }}", "write {{ context }} into it"),
        (
            "p.jinja",
            "{{ question }} {{ context }} {{ lipsum() }}",
            "cannot be filled in: 'lipsum' is undefined",
        ),
        ("p.jinja", "a\n{{ question }", r"p\.jinja:2: this prompt is not valid Jinja"),
        (
            "p.jinja",
            "{{ question }} {{ context }} {{ title }}",
            "unknown slot 'title'; a prompt has question",
        ),
        ("p.jinja", "{% include 'x' %}{{ question }} {{ context }}", "cannot be filled in"),
        ("p.toml", "template = '{nuggets} {context}'\n", 'a .toml file with `parser = "assignment"`'),
        ("p.jinja", "{{ nuggets }} {{ context }}", 'a .toml file with `parser = "assignment"`'),
        (
            "p.toml",
            "template = '{nugget} {context}'\nparser = 'assignment'\n",
            "a list of nuggets needs {nuggets}",
        ),
        (
            "p.toml",
            "template = '{nugget} {context}'\ngroup = 5\n",
            "`group`, {num_nuggets} and that parser are for such a list",
        ),
        ("p.toml", "template = '{nuggets} {nugget} {context}'\nparser = 'assignment'\n", "take {nugget} out"),
        (
            "p.toml",
            "template = '{nuggets} {context}'\nparser = 'assignment'\nasks = 'query'\n",
            "take `asks` out",
        ),
        ("p.toml", "template = '{nuggets}'\nparser = 'assignment'\n", "no place for the passage"),
        ("p.toml", "template = '{nuggets} {context}'\nparser = 'assignment'\ngroup = 1\n", "`group`"),
        (
            "p.toml",
            "template = '{nuggets} {context}'\nparser = 'assignment'\nanswers = { 'a, b' = 1 }\n",
            "'a, b' cannot be told from others in a list",
        ),
        (
            "p.toml",
            "template = '{nuggets} {context}'\nparser = 'assignment'\nanswers = { Full = 1, full = 0 }\n",
            "'full' cannot be told from others in a list",
        ),
        (
            "p.toml",
            "template = '{nuggets} {context}'\nparser = 'assignment'\nanswers = {}\n",
            "`answers`: a list needs labels",
        ),
    ],
)
def test_an_invalid_prompt_is_a_one_line_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(GraderError, match=message) as caught:
        load_prompt(written(tmp_path / name, text))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_versions_may_be_numbers_and_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "P.TOML"
    path.write_bytes(b"\xef\xbb\xbftemplate = '{question} {context}'\nversion = 2\n")
    assert named("P.TOML", tmp_path).version == "2"


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


def test_a_jinja_prompt_cannot_access_anything_outside_itself(tmp_path: Path) -> None:
    path = written(tmp_path / "p.jinja", "{{ question.__class__.__mro__ }} {{ context }}")
    with pytest.raises(GraderError, match="cannot be filled in"):
        load_prompt(path)
    path = written(
        tmp_path / "q.jinja", "{% for x in range(10**9) %}a{% endfor %}{{ question }} {{ context }}"
    )
    with pytest.raises(GraderError, match="cannot be filled in"):
        load_prompt(path)
