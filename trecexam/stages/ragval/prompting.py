"""Prompts on blocks, with as much of these as may stand there, and as the model takes."""

from __future__ import annotations

from converters.knowledge import Block
from trecexam.bank.knowledge.prompts import BlockPrompt
from trecexam.graders.writing import Fitted, Writer


def block_prompt(prompt: BlockPrompt, block: Block, writer: Writer, most: int) -> Fitted:
    """The prompt on a block, whose end is cut where it is too long.

    Args:
        most: characters of the block.
    """
    title = block.row.get("title")
    values = {"title": writer.plain(title) if isinstance(title, str) else ""}
    fitted = writer.fitted(lambda part: prompt.text({**values, "text": part}), block.content[:most])
    return fitted._replace(cut=fitted.cut or len(block.content) > most)


def question_prompt(prompt: BlockPrompt, question: str, content: str, writer: Writer) -> Fitted:
    """The prompt on a question, with its block where the prompt names it."""
    values = {"question": writer.plain(question)}
    if "{text}" not in prompt.template:
        return Fitted(prompt.text(values), cut=False)
    return writer.fitted(lambda part: prompt.text({**values, "text": part}), content)
