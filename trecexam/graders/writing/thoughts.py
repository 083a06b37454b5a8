"""What a model wrote, without the thoughts that it wrote before."""

from __future__ import annotations


def without_thoughts(answer: str) -> str | None:
    """What follows the model's thoughts; None where it never came to an end of them."""
    if "</think>" in answer:
        return answer.rpartition("</think>")[2]
    return None if answer.lstrip().startswith("<think>") else answer
