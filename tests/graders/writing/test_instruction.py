"""Settings for all prompts of a writer: system message, schema and maximum length."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from scripted_server import serving
from tiny_models import save_llama, save_t5

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.local_models.writer import LocalWriter
from trecexam.graders.replies import Unwritten, WrittenText
from trecexam.graders.writing.create import grading_writer

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}


def settings(**words: object) -> GraderSection:
    return GraderSection.model_validate({"name": "ragval", "device": "cpu", "dtype": "float32", **words})


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_server_gets_the_system_message_and_the_schema(tmp_path: Path, api: str) -> None:
    with serving() as server:
        grader = settings(base_url=server.url, model="m", api=api)
        writer = grading_writer(grader, tmp_path, "You judge.", SCHEMA)
        list(writer.write(["Judge this"]))
    body = next(body for body in server.bodies if "Judge this" in str(body))
    if api == "chat":
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert [message["content"] for message in body["messages"]] == ["You judge.", "Judge this"]
    else:
        assert body["prompt"] == "You judge.\n\nJudge this"
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert writer.identity != grading_writer(grader, tmp_path, "Other.", SCHEMA).identity
    assert writer.identity != grading_writer(grader, tmp_path, "You judge.").identity


def test_text_sent_to_a_server_is_cut_at_a_word(tmp_path: Path) -> None:
    grader = settings(base_url="http://127.0.0.1:9", model="m", max_characters=12)
    writer = grading_writer(grader, tmp_path)
    assert writer.fitted("<{}>".format, "heat pumps warm us") == ("<heat pumps>", True)
    assert writer.fitted("<{}>".format, "heat pumps") == ("<heat pumps>", False)


@pytest.mark.parametrize("kind", ["causal", "seq2seq"])
def test_a_local_model_gets_the_system_message_before_each_prompt(tmp_path: Path, kind: str) -> None:
    folder = (save_llama if kind == "causal" else save_t5)(tmp_path / "model")
    told = settings(model=str(folder), max_new_tokens=6)
    one = grading_writer(told, tmp_path, "what is it")
    other = grading_writer(told, tmp_path)
    assert isinstance(one, LocalWriter)
    assert one.settings.kind == kind
    assert [found for _, found in next(one.write(["who was that"]))] == [
        found for _, found in next(other.write(["what is it\n\nwho was that"]))
    ]
    assert one.identity != other.identity


def test_a_text_for_a_local_model_is_cut_to_fit(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "model")
    whole = " ".join(["what is the cost of it"] * 60)
    writer = grading_writer(settings(model=str(folder), max_new_tokens=4, max_length=60), tmp_path, "who")
    prompt, cut = writer.fitted("what {} what".format, whole)
    assert cut
    assert prompt.endswith(" what")
    kept = prompt.removeprefix("what ").removesuffix(" what")
    assert whole.startswith(kept)
    assert isinstance(next(writer.write([prompt]))[0][1], WrittenText)
    longer = whole[: len(kept) + 8]
    assert isinstance(next(writer.write([f"what {longer} what"]))[0][1], Unwritten)
    assert writer.fitted("what {} what".format, "the cost") == ("what the cost what", False)


def test_without_a_model_the_error_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="`ragval` needs a language model: set `model`"):
        grading_writer(settings(), tmp_path)
