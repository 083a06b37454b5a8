"""Prompts on blocks, with as much of these as may stand there, and as the model takes."""

from __future__ import annotations

from trecexam.extensions.ragval.formats.knowledge import Block
from trecexam.extensions.ragval.knowledge.prompts import BlockPrompt
from trecexam.graders.server.grader import shortened
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


def question_prompt(
    prompt: BlockPrompt, question: str, content: str, writer: Writer, most: int | None = None
) -> Fitted:
    """The prompt on a question, with its block where the prompt names it.

    Args:
        most: characters of the block; None for as many as the model takes.
    """
    values = {"question": writer.plain(question)}
    if "{text}" not in prompt.template:
        return Fitted(prompt.text(values), cut=False)
    part = content if most is None else shortened(content, most)
    fitted = writer.fitted(lambda part: prompt.text({**values, "text": part}), part)
    return fitted._replace(cut=fitted.cut or len(part) < len(content))
