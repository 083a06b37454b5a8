"""How a server is asked for a list of labels, the first time and again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trecexam.graders.server.messages import Form

#: The least temperature of a list that is asked for again, since at 0 the same would come: nuggetizer's.
TEMPERATURE_AGAIN = 0.2


def list_form(form: Form, labels: Sequence[str], number: int, *, again: bool) -> Form:
    """The form of a request for `number` of these labels.

    With `structured`, the answer is held to a list of that length: by a JSON schema, or by the regular
    expression that vLLM takes in place of a choice.

    Args:
        again: the first answer was no such list; the same is asked warmer, and with the next seed.
    """
    if again:
        seed = None if form.seed is None else form.seed + 1
        form = replace(form, temperature=max(TEMPERATURE_AGAIN, form.temperature), seed=seed)
    if form.structured == "json_schema":
        of_list = {"type": "array", "items": {"type": "string", "enum": list(labels)}}
        schema = {
            "type": "object",
            "properties": {"labels": {**of_list, "minItems": number, "maxItems": number}},
            "required": ["labels"],
            "additionalProperties": False,
        }
        return replace(form, schema=schema)
    if form.structured == "choice":
        label = f"'({'|'.join(map(re.escape, labels))})'"
        expression = rf"\[{label}(, {label}){{{number - 1}}}\]"
        extra = {"structured_outputs": {"regex": expression}, **form.extra}
        return replace(form, structured=None, extra=extra)
    return form
