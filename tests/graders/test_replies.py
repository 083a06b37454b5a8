"""A model's reply: its text without thoughts, how it ended, and the rating that each shape means."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import outside
from scripted_server import Exchange, serving

from converters.records import Item
from trecexam.extensions.banks.generation.reading import read_items
from trecexam.extensions.exams.questions.reading import read_choice, read_question
from trecexam.extensions.ragval.grader.reading import read_scores
from trecexam.extensions.ragval.knowledge.reading import read_question as read_knowledge_question
from trecexam.graders.base import Cell
from trecexam.graders.prompts import published
from trecexam.graders.prompts.parsing import ASSIGNMENTS, read_labels
from trecexam.graders.replies import MOST_READ, read_reply

ITEM = Item("q", "q/1", "What do cats eat?", "question")
RATING = published()["QuestionSelfRatedUnanswerablePromptWithChoices"]
UMBRELA = published()["UMBRELA"]
SUPPORT = published()["TRECRAG2024Support"]
LABELS = [label for label, _ in ASSIGNMENTS]
SIZE = 3_500_000
#: Endless output of broken models and servers.
PARTS = (
    *("4 ", "4\n", "\n", " ", "\t\n", "[{", '["a", ', "'a', ", "final score: ", "the final ", "<think>"),
    *("```\n", "relevance: 4 ", "**", "*a ", "Question: ", "A) a B) b ", "answer: ", '"\\', "1. what?\n"),
    *("a", "("),
)
CHOICES = ("a pump", "a moon", "a bee", "bread")
READERS: dict[str, Callable[[str], Any]] = {
    **{each.name: lambda text, each=each: each.read(text, ITEM) for each in (RATING, UMBRELA, SUPPORT)},
    "reply": read_reply,
    "labels": lambda text: read_labels(text, 5, LABELS),
    "scores": read_scores,
    "items": lambda text: read_items(text, "question"),
    "exam question": read_question,
    "exam choice": lambda text: read_choice(text, CHOICES),
    "knowledge question": read_knowledge_question,
}


@pytest.mark.parametrize(
    "reply",
    ["4", " 4\n", "\ufeff4", "\u200b4\u200b", "<think>2?</think>4", "2?</think>\n4", "<think></think>4",
     "<thinking>2</thinking>4", "<THINK>2</THINK>4", "<think time='3'>2</think>4",
     "<seed:think>2</seed:think>4",
     "<reasoning>2</reasoning>4", "<analysis>2</analysis>\n4", "4\n<reasoning>2 of 3</reasoning>",
     "<think>a</think><think>b</think>4", "[THINK]2[/THINK]4", "\u25c1think\u25b72\u25c1/think\u25b74",
     "<|begin_of_thought|>2<|end_of_thought|><|begin_of_solution|>4<|end_of_solution|>",
     "<|START_THINKING|>2<|END_THINKING|>4", "4<|im_end|>", "4</s>",
     "<|channel|>analysis<|message|>2<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>",
     "<|channel|>final <|constrain|>json<|message|>4", "analysisWe need 2.assistantfinal4",
     "Here is my thought process: 2. Here is my response: 4",
     "<reasoning>I could say <think> here</reasoning></think>4"],
)  # fmt: skip
def test_thoughts_and_invisible_characters_are_no_text(reply: str) -> None:
    assert read_reply(reply) == ("4", False)


@pytest.mark.parametrize(
    "reply",
    ["<think>4", "<think>2</think><think>4", "Okay. <think>4", "4 <think>but", "[THINK]4", "<analysis>4",
     "\u25c1think\u25b74", "<|channel|>analysis<|message|>4", "analysisWe need 4"],
)  # fmt: skip
def test_a_thought_without_its_end_gives_no_text(reply: str) -> None:
    assert read_reply(reply) == ("", True)


def test_the_end_of_a_reply_is_told() -> None:
    assert read_reply("4", cut=True) == ("4", True)
    assert read_reply(" \n") == read_reply("<think>4</think>") == ("", False)
    assert read_reply("a <analysis> is a tag") == ("a <analysis> is a tag", False)


@pytest.mark.parametrize(
    ("rating", "replies"),
    [
        (4, ["4.0", "4/5", "4 / 5", "4 out of 5", "Rating: 4", "**Rating:** 4", "Score = 4",
             "Rating (0-5): 4"]),
        (4, ["Answer: 4", "Final answer: 4", "The final answer is 4.", "Rating: four", "four",
             "| Rating | 4 |"]),
        (4, ["\uff14", "\u0664", "\u8bc4\u5206\uff1a4", "\u5f97\u5206: 4\u5206", "4\ufe0f\u20e3", "[4]",
             "'4'"]),
        (4, ['{"rating": 4, "reason": "2 of 3"}', '{"reason": "Rating: 3 is low", "score": "4"}',
             "{'rating': 4}"]),
        (4, ['Here:\n```json\n{"rating": 4}\n```', '{"rating": 4,}', '{"result": {"rating": 4.0}}',
             "{rating: 4}"]),
        (4, ["\\boxed{4}", "$\\boxed{\\text{4}}$", "<rating>4</rating>", "<answer>\n4\n</answer>",
             "```\n4\n```"]),
        (4, ["It names 3 fish.\n\nRating: 4", "1. fish\n2. mice\nFinal rating: 4", "It names fish.\n\n4"]),
        (4, ["Rating: 3\nFinal rating: 4", "Rating: 4\nConfidence: 2", "4\n\n(If it were on dogs: 0)"]),
        (4, ["I'd give it a 4", "I would rate this passage 4 out of 5.", "No, I can rate it: 4"]),
        (5, ["The answer is highly relevant, complete, and accurate."]),
        (0, ["None", "unanswerable", "I cannot find it in the passage.\nRating: 0"]),
        (None, ["7", "-1", "8/10", "3.5", "3-4", "Rating: 3 or 4", "Between 2 and 3", "4%", "~4", "N/A",
                ">3"]),
        (None, ["Rating: 3\nRating: 4", '{"rating": 3}\n{"rating": 4}', "4\nRating: 3",
                "<rating>8/10</rating>", '{"rating": {"values": [3], "max": 5}}', '{"rating": 2,5}']),
        (None, ['{"rating": null}', '{"rating": true}', '{"rating": 8}', '{"confidence": 4, "reason": "x"}']),
        (None, ["I'm sorry, I can't rate this 4.", "I can't. If in danger call 9 1 1.",
                "Confidence score: 5"]),
        (None, ["I'd give it a 4, if it named mice.", "I would not give it a 4.",
                "I'd give it a 3. Or a 4."]),
        (None, ["The maximum score is 5.", "Answer: 4 cats", "The answer is 3", "4:30", "\u00bd", "4\u00bd"]),
    ],
)  # fmt: skip
def test_a_rating_is_read_where_it_is_stated_once(rating: int | None, replies: list[str]) -> None:
    for reply in replies:
        assert RATING.read(reply, ITEM) == rating, reply


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("##final score: 3", 3), ("M: 2 T: 2 ##final score: 2.", 2), ("M: 1\n##final score: [2], because", 2),
     ("M: 1 ##final score: <2>", 2), ("##final score: 1\n##final score: 3", 3), ("3", 3), ("Score: 2", 2),
     ("##final score: 4", None), ("##final score: 2.5", None), ("##final score: 10", None), ("", None),
     ("**##final score: 2**", 2), ("final_score = 2", 2), ("##final score: {2}", 2), ("final score: two", 2),
     ("##final score: 1\nThe final score is 2.", 2), ("##final score: 1\nThe final score is 4.", None),
     ("The final score is 2/3.", 2), ("M: 2\nT: 3\nO: 1", 1), ('{"M": 2, "T": 1, "O": 2}', 2),
     ("##final score: 1 no\n</think>\n##final score: 2", 2), ("##final score: 2\n\nIt matches 3 intents", 2),
     ("##final score: 2-3", None), ("##final score: -1", None), ("M: 2\nT: 3", None)],
)  # fmt: skip
def test_a_final_score_is_read_in_any_form(reply: str, rating: int | None) -> None:
    assert UMBRELA.read(reply, ITEM) == rating


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("``partial_support''", 1), ("**No Support**: nothing of it is there.", 0), ("Partial support.", 1),
     ("I think it has no support", 0), ("The citation lacks full support", None), ("supported", None),
     ("The statement is not in full support.", None), ("It doesn't have full support", None),
     ("full_support or partial_support", None), ("There is no full support for it.", None),
     ("This comes without partial support.", None), ("fully", None), ("", None),
     ("partial_support\n\nThe citation does not mention the price, so it isn't full support.", 1),
     ("**Full Support**. The citation doesn't contradict it.", 2), ("full_support\nno_support", None),
     ("Answer: no_support\nReason: it does not say so.", 0), ("Full support? Not at all.", None),
     ("It says when, but not why.\n\n`partial_support`", 1),
     ("Full support: no. Partial support: yes.", None),
     ("Option 1: Full Support", 2), ("(1) Full Support", 2), ("Fully supported", 2), ("full_support", 2),
     ('{"label": "Partial Support", "reason": "no support for x"}', 1), ("<answer>No Support</answer>", 0),
     ('{"label": "unsure", "reason": "no support for x"}', None),
     ("<answer>Full support\nNo support</answer>", None), ("<answer>{'label': 'No Support'}</answer>", 0),
     ("No support\nhm\n</think>\nFull Support", 2), ("Not Supported", None), ("Not fully supported", None),
     ("The citation provides full support.", 2), ("Full Support?", None), ("Hardly full support", None),
     ("Less than full support", None), ("It fails to give full support.", None),
     ("If it named the year, Full Support", None), ("Full support would require more detail.", None),
     ("Full Support. Actually, Partial Support.", None),
     ("Fully supported or Partial Support", None), ("Answer: Full Support. But wait", None)],
)  # fmt: skip
def test_a_label_of_support_is_read_in_any_form(reply: str, rating: int | None) -> None:
    assert SUPPORT.read(reply, ITEM) == rating


@pytest.mark.parametrize(
    ("reply", "rating"),
    [("Rating: 4. Hmm, actually 2.", None), ("Rating: 4 -> changed to 3", None), ("Score: 4 \u2192 5", None),
     ("Example: Rating: 4", None), ("My rating would be 4.", 4), ("Overall: 4", 4), ("Rating -> 4", 4),
     ("It names 2 facts. Final answer: 4", 4), ("1. It names fish.\n2. It names mice.\nRating: 4", 4)],
)  # fmt: skip
def test_a_rating_that_is_taken_back_or_an_example_is_not_read(reply: str, rating: int | None) -> None:
    assert RATING.read(reply, ITEM) == rating


@pytest.mark.parametrize(
    ("prompt", "complete", "incomplete"),
    [
        (RATING, ["4", "Rating: 4", '{"rating": 4}', "<think>2</think>4"],
         ["4.", "Rating: 4\nThe", "It.\nRating: 4", '{"rating": 4, "re', "I'd give it a 4", "no",
          "<think>4"]),
        (UMBRELA, ["2", "##final score: 2"], ["Okay. A first guess is ##final score: 3, but wait",
                   "M: 1\nO: 2", "##final score: -1"]),
        (SUPPORT, ["Full Support"], ["<think>\nFull support. But", "Full Support. The passage"]),
    ],
)  # fmt: skip
def test_a_reply_that_is_cut_off_counts_where_it_is_a_complete_answer(
    prompt: object, complete: list[str], incomplete: list[str]
) -> None:
    for reply in complete:
        assert prompt.read(reply, ITEM, cut=True) is not None, reply  # type: ignore[attr-defined]
    for reply in incomplete:
        assert prompt.read(reply, ITEM, cut=True) is None, reply  # type: ignore[attr-defined]
    assert read_labels("['support', 'not_support']", 2, LABELS, cut=True) is not None
    assert read_labels("['support', 'not_support'] and", 2, LABELS, cut=True) is None


_PIECES = st.sampled_from(
    ["4", "5", "/", " ", "\n", "Rating: ", "final score: ", "<think>", "</think>", "{", "}", '"rating": ',
     "[", "]",
     "support", "full support", "I give it ", "\\boxed{", "<answer>", "```", "-", ".", "not", "\u0664",
     "<|channel|>"]
)  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=3), max_size=30).map("".join), st.booleans())
def test_each_prompt_reads_every_reply_as_a_rating_of_its_scale_or_not_at_all(reply: str, cut: bool) -> None:
    pytest.importorskip("rapidfuzz")
    for prompt in published().values():
        rating = prompt.read(reply, ITEM._replace(gold_answers=("Paris",)), cut=cut)
        assert rating is None or 0 <= rating <= prompt.max_rating


def test_the_replies_of_the_field_are_read_as_a_fair_reader_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers by the passage's `CASE=name`."""
    pytest.importorskip("httpx2")
    from trecexam.config import GraderSection
    from trecexam.graders.server.grader import _create

    cases = [json.loads(line) for line in outside("field/answers.jsonl").read_text().splitlines()]
    replies = {case["name"]: case["reply"] for case in cases}

    def answer(exchange: Exchange) -> None:
        name = re.findall(r"CASE=(\w+)", exchange.prompt)
        reply = replies.get(name[-1], {"content": "0"}) if name else {"content": "0"}
        message = {"content": reply.get("content"), **reply.get("message", {})}
        text = message.pop("content")
        exchange.say("", finish=reply.get("finish", "stop"), **{"content": text, **message})

    kinds = {"rating": None, "umbrela": "UMBRELA", "nuggets": "NuggetAssign", "support": SUPPORT.name}
    wrong = []
    with serving(answer) as server:
        for asked, prompt in kinds.items():
            settings = {"name": "openai", "model": "m", "base_url": server.url, "prompt": prompt}
            grader = _create(GraderSection.model_validate(settings), outside("field"))
            of_kind = [case for case in cases if case["asked"] == asked]
            kind = {"umbrela": "query", "nuggets": "nugget", "support": "statement"}.get(asked, "question")
            cells = [
                Cell(
                    "q", "cats", case["name"], f"CASE={case['name']}", Item("q", f"q/{n}", f"fact {n}", kind)
                )
                for case in of_kind
                for n in range(3 if asked == "nuggets" else 1)
            ]
            found: dict[str, list[int | None]] = {}
            for batch in grader.grade(cells):
                for cell, said in sorted(batch, key=lambda each: each[0].item.item_id):
                    found.setdefault(cell.doc_id, []).append(said.rating)
                    assert grader.read(cell.item, said.raw, said.cut_at is not None) == said.rating
            for case in of_kind:
                expected = case["expected"]
                ratings = found[case["name"]]
                got = ratings if None not in ratings and asked == "nuggets" else ratings[0]
                if got != (expected if expected != "unparsed" else None):
                    wrong.append((case["name"], ratings, expected))
    assert not [case for case in wrong if case[2] in ("unparsed", None)]
    assert len(wrong) <= len(cases) - 92, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_an_answer_of_megabytes_is_read_quickly(name: str) -> None:
    pytest.importorskip("json_repair")
    pytest.importorskip("nltk")
    read = READERS[name]
    read("4")
    for part in PARTS[::2]:
        text = part * (SIZE // len(part))
        began = time.process_time()
        read(text)
        assert time.process_time() - began < 2, part


@pytest.mark.parametrize("unit", ["\\", ".", "{'", "1. a\n"])
def test_a_flood_of_marks_is_read_quickly(unit: str) -> None:
    text = '{"a":"' + unit * (MOST_READ // len(unit))
    for prompt in (RATING, UMBRELA, SUPPORT):
        prompt.read("4", ITEM)
        began = time.process_time()
        prompt.read(text, ITEM)
        assert time.process_time() - began < 5


def test_text_before_the_cut_is_read_and_text_after_it_is_not() -> None:
    for blanks, rating in ((MOST_READ - 20, 2), (MOST_READ, None)):
        assert UMBRELA.read("." + "x" * blanks + "\nfinal score: 2", ITEM) == rating


def test_reasoning_text_is_ignored() -> None:
    thoughts = "<think>" + "hm " * MOST_READ + "</think>"
    assert read_reply(thoughts + "4") == ("4", False)
