"""Prompts as templates: texts with slots in braces, or Jinja's, from files of the user's own."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from converters.errors import ConversionError
from converters.lines import open_input
from trecexam.errors import GraderError, did_you_mean, plain_reason

if TYPE_CHECKING:
    import jinja2

Prompt = TypeVar("Prompt")
_SLOT = re.compile(r"\{([A-Za-z_]\w*)\}")


class TemplateFile(BaseModel):
    """The TOML file of a user's prompt: a text with slots, and a name other than the file's."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    template: str
    name: str | None = None


OwnFile = TypeVar("OwnFile", bound=TemplateFile)


class OwnPrompt(NamedTuple, Generic[OwnFile]):
    """A user's prompt. `digest_name` tells what was sent if the text under a `name` changes."""

    file: OwnFile
    name: str
    digest_name: str
    template: str
    jinja: bool


def slots(template: str, *, jinja: bool) -> frozenset[str]:
    """Return the names that a template wants filled in, known or not.

    Raises:
        jinja2.TemplateSyntaxError: it is not valid Jinja.
    """
    if not jinja:
        return frozenset(_SLOT.findall(template))
    from jinja2 import Environment, meta

    names: set[str] = meta.find_undeclared_variables(Environment(autoescape=False).parse(template))
    return frozenset(names)


@cache
def _compiled(template: str) -> jinja2.Template:
    """Compile a Jinja template that reaches nothing but its variables, and must know all of these."""
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=False)
    # The same values must give the same prompt each time.
    del environment.globals["lipsum"], environment.filters["random"]
    return environment.from_string(template)


def filled(template: str, values: Mapping[str, str], *, jinja: bool, name: str) -> str:
    """Fill these values into the slots of a template; other braces stay.

    Args:
        name: of the prompt, for the message.
    """
    if not jinja:
        return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), template)
    try:
        return _compiled(template).render(values)
    except Exception as error:
        # A template is a program of the user's: it can fail in any way.
        raise GraderError(f"prompt {name} cannot be filled in: {error}") from error


def read_own_prompt(
    path: Path, form: type[OwnFile], slot_names: Sequence[str], needed: Mapping[str, Sequence[str]]
) -> OwnPrompt[OwnFile]:
    """Read the prompt in a `.toml` file or a Jinja template.

    Args:
        slot_names: the slots that there are.
        needed: what a prompt must have a place for -> the slots that are such a place, the usual one first.
    """
    jinja = path.suffix.lower() != ".toml"
    try:
        with io.TextIOWrapper(open_input(path), encoding="utf-8-sig") as opened:
            text = opened.read()
        file = form.model_validate({"template": text} if jinja else tomllib.loads(text))
        template = file.template.removesuffix("\n")
        present = slots(template, jinja=jinja)
    except tomllib.TOMLDecodeError as error:
        line_match = re.search(r"\(at line (\d+)", str(error))
        line = int(line_match[1]) if line_match else len(text.splitlines())
        raise GraderError(f"this prompt is not valid TOML: {error}", path=path, line=line) from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        field_names = ", ".join(form.model_fields)
        raise GraderError(f"`{name}`: {plain_reason(first)}; a prompt has {field_names}", path=path) from None
    except (OSError, UnicodeDecodeError, ConversionError) as error:
        raise GraderError(f"this prompt cannot be read: {error}", path=path) from None
    except Exception as error:
        # Of Jinja: `slots` imports it late.
        at = getattr(error, "lineno", None)
        raise GraderError(f"this prompt is not valid Jinja: {error}", path=path, line=at) from None
    if not jinja and (double := re.search(r"\{\{\s*([A-Za-z_]+)\s*\}\}", template)):
        right = double[1] if double[1] in slot_names else slot_names[-1]
        raise GraderError(f"double braces are Jinja's: write {{{right}}}, or name the file .jinja", path=path)
    unknown = sorted(present - set(slot_names))
    if unknown:
        hint = "" if jinja else " (braces of your own: write the prompt as a .jinja file)"
        raise GraderError(
            f"unknown slot '{unknown[0]}'; a prompt has {', '.join(slot_names)}{hint}", path=path
        )
    for what, names in needed.items():
        if present.isdisjoint(names):
            slot = f"{{{{ {names[0]} }}}}" if jinja else f"{{{names[0]}}}"
            raise GraderError(f"this prompt has no place for the {what}: write {slot} into it", path=path)
    name = file.name or path.stem
    digest = sha256(template.encode()).hexdigest()[:12]
    return OwnPrompt(file, name, f"{name} sha256:{digest}", template, jinja)


def published_prompt(name: str, prompts: Mapping[str, Prompt]) -> Prompt:
    """Return the prompt of that name."""
    if name not in prompts:
        hint = did_you_mean(name, prompts, f"known are {', '.join(prompts)}")
        raise GraderError(f"no prompt '{name}'; {hint} (your own goes into a .toml or .jinja file)")
    return prompts[name]
