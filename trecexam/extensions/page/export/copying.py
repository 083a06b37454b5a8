"""A page in a copy: no forms, no scripts, links to files of the copy. Pure."""

from __future__ import annotations

from collections.abc import Collection
from html import escape, unescape
from html.parser import HTMLParser
from urllib.parse import urlsplit

from trecexam.extensions.page.export.blinding import Names
from trecexam.extensions.page.export.naming import canonical, file_of, link, own_path

#: What needs a server, by element, and by element and id.
_LEFT_OUT = {"form", "script", "button", "noscript"}
_LEFT_OUT_IDS = {"status", "notice", "messages", "told", "judge-keys"}
#: Elements without an end.
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Copier(HTMLParser):
    """Rewrites a page.

    Args:
        left_out: paths of pages that are not in the copy, of any grader.
        left_out_classes: classes of elements that are not in it.

    Attributes:
        links: canonical addresses, and files under /static, that it links to.
    """

    def __init__(
        self,
        address: str,
        names: Names,
        left_out: Collection[str] = (),
        left_out_classes: Collection[str] = (),
    ) -> None:
        super().__init__(convert_charrefs=False)
        self.links: list[str] = []
        self._file = file_of(names.in_address(address))
        self._names = names
        self._pages_left_out = left_out
        self._classes_left_out = left_out_classes
        self._out: list[str] = []
        self._text: list[str] = []
        self._open: list[str] = []
        # How deep what was left out begins.
        self._left_out: int | None = None
        self._unlinked: list[bool] = []

    def copied(self, page: str) -> str:
        """The page for the copy."""
        self.feed(page)
        self.close()
        self._flush()
        return "".join(self._out)

    def handle_decl(self, decl: str) -> None:
        self._write(f"<!{decl}>")

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_entityref(self, name: str) -> None:
        self._text.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._text.append(f"&#{name};")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._flush()
        values = dict(attrs)
        if tag not in _VOID:
            self._open.append(tag)
        if self._left_out is not None:
            return
        is_left_out = any(name in self._classes_left_out for name in (values.get("class") or "").split())
        if tag in _LEFT_OUT or values.get("id") in _LEFT_OUT_IDS or is_left_out:
            self._left_out = len(self._open)
            return
        if tag == "a":
            target = self._target(values.get("href") or "")
            self._unlinked.append(target is None)
            if target is None:
                return
            values["href"] = target
        elif tag == "link":
            values["href"] = self._target(values.get("href") or "") or ""
        elif tag == "body":
            values = {}
        attributes = {key: value for key, value in values.items() if not key.startswith("data-")}
        text = "".join(
            f" {key}" if value is None else f' {key}="{escape(self._attribute(key, value))}"'
            for key, value in attributes.items()
        )
        self._write(f"<{tag}{text}>")

    def handle_endtag(self, tag: str) -> None:
        self._flush()
        if tag in _VOID or tag not in self._open:
            return
        while self._open:
            depth, ended = len(self._open), self._open.pop()
            if self._left_out is not None:
                self._left_out = None if depth == self._left_out else self._left_out
            elif ended != "a" or not self._unlinked.pop():
                self._write(f"</{ended}>")
            if ended == tag:
                return

    def _attribute(self, key: str, value: str) -> str:
        return value if key in {"href", "class", "id"} else self._names.in_text(value)

    def _target(self, href: str) -> str | None:
        parts = urlsplit(href)
        if not parts.path and not parts.query and parts.fragment:
            return href
        if parts.path.startswith("/static/"):
            self.links.append(parts.path)
            return link(self._file, file_of(parts.path))
        address = canonical(href)
        if address is None or own_path(address.split("?")[0]) in self._pages_left_out:
            return None
        self.links.append(address)
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        return link(self._file, file_of(self._names.in_address(address))) + fragment

    def _flush(self) -> None:
        text, self._text = "".join(self._text), []
        if self._left_out is None and text:
            plain = unescape(text)
            named = self._names.alone(plain) if self._open[-1:] == ["bdi"] else self._names.in_text(plain)
            self._write(text if named == plain else escape(named, quote=False))

    def _write(self, text: str) -> None:
        if self._left_out is None:
            self._out.append(text)
