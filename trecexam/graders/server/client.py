"""A request to a server and its answer, or one word on what is wrong; and the key, which is never shown."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import email.utils
import html
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import httpx2

from trecexam.config import LanguageModelSection
from trecexam.errors import GraderError
from trecexam.graders.server.model import PassingError

#: Bytes of an answer. A grade takes a few hundred: more is a server that does not end.
LARGEST = 4 * 2**20
#: Seconds until a server must have taken a connection.
CONNECT = 10.0
_KEY_REFUSED = frozenset({401, 403})
#: Engines that batch requests, as `/models` names the owner of a model.
VLLM, SGLANG = "vllm", "sglang"
_PASSING = frozenset({408, 409, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
#: What a key that leaks into a text is replaced with.
HIDDEN = "[key]"
#: Characters: a shorter key guards nothing, and is a word of honest answers ("4", "none").
_SHORTEST = 5
#: From so many characters on a key is not an ordinary word, and is hidden inside of other words too.
_NO_WORD = 8
#: Servers repeat a key's beginning ("sk-abcd****"): so much is hidden where a word begins, and anywhere.
_BEGINNING, _LONG_BEGINNING = 6, 12
#: And its end: tails of so many characters are hidden.
_TAIL = 8


class Secret:
    """A key, or none, and other headers. Printed or formatted it is empty; only `headers` gives it away."""

    def __init__(
        self, key: str = "", headers: Mapping[str, str] = MappingProxyType({}), others: Sequence[str] = ()
    ) -> None:
        """Hold the key, other headers, and those of their values that are as secret as the key."""
        self._headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **headers}
        self._secrets = tuple(secret for secret in (key, *others) if secret)

    @classmethod
    def from_environment(cls, name: str | None, headers: Mapping[str, str] = MappingProxyType({})) -> Secret:
        """Return the key in the environment variable `name`; none where no name is given.

        Args:
            headers: more of them; the value "$NAME" is read from the environment, and as secret as a key.

        Raises:
            GraderError: a variable is not set, or holds what no key can be.
        """
        read = {key: _read(value[1:], "headers") for key, value in headers.items() if value[:1] == "$"}
        return cls("" if name is None else _read(name, "key_env"), {**headers, **read}, [*read.values()])

    def headers(self) -> dict[str, str]:
        """Return the authentication for the server, and the other headers."""
        return self._headers

    def hidden(self, text: str) -> str:
        """Return the text without a key, plain or encoded, in any case; also without its beginning or end."""
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(_pattern, self._secrets))


def _read(name: str, setting: str) -> str:
    key = os.environ.get(name, "").strip()
    if len(key) >= _SHORTEST and key.isascii() and key.isprintable() and " " not in key:
        return key
    reason = f"holds no key of {_SHORTEST} or more plain characters" if key else "is not set"
    raise GraderError(
        f"the environment variable {name} {reason}: put the key into it, name another one in `{setting}` in "
        "[grader], or leave it out where the server wants none"
    )


def _pattern(key: str) -> re.Pattern[str]:
    forms = {
        key,
        quote(key),
        quote(key, safe=""),
        json.dumps(key)[1:-1],
        html.escape(key),
        base64.b64encode(key.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    }
    if len(key) >= _NO_WORD:
        forms |= {form[start:] for form in tuple(forms) for start in range(len(form) - _TAIL + 1)}
    whole = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    if len(key) < _NO_WORD:
        return re.compile(rf"(?<![A-Za-z0-9])(?:{whole})(?![A-Za-z0-9])", re.IGNORECASE)
    if len(key) < 2 * _BEGINNING:
        return re.compile(rf"(?:{whole})=*", re.IGNORECASE)
    begun = rf"(?<![A-Za-z0-9]){re.escape(key[:_BEGINNING])}|{re.escape(key[:_LONG_BEGINNING])}"
    return re.compile(rf"(?:{whole}|{begun})[^\s\"',;<>]*", re.IGNORECASE)


class RefusedError(Exception):
    """A request that the server never takes: `reason` follows "the server ...", `code` is its own word."""

    def __init__(self, reason: str, code: str = "") -> None:
        self.reason, self.code = reason, code
        super().__init__(reason)


class Client:
    """A server, in one event loop.

    Raises:
        GraderError: the address, the environment's proxies or its key are wrong.
    """

    def __init__(self, settings: LanguageModelSection) -> None:
        # At DEBUG these log what a server sends, and that may hold the key.
        for name in ("httpcore2", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.base_url, self._settings = str(settings.base_url), settings
        self.secret = Secret.from_environment(settings.key_env, settings.headers)
        self._query = settings.query or None
        # The deadline is on the whole answer: a server that sends a byte now and then keeps to any other.
        try:
            self._http = httpx2.AsyncClient(
                headers={"User-Agent": "trecexam", **self.secret.headers()},
                timeout=httpx2.Timeout(None, connect=CONNECT),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                follow_redirects=False,
            )
            httpx2.URL(self.base_url)
        except httpx2.InvalidURL as error:
            raise GraderError(f"`base_url` {self.base_url} in [grader] is not an address: {error}") from None
        except (ImportError, OSError, ValueError) as error:
            # Not the error's text: a proxy's address may hold a password.
            raise GraderError(
                "the environment's settings for proxies or certificates (HTTPS_PROXY, SSL_CERT_FILE ...) "
                f"cannot be used ({type(error).__name__})"
            ) from None

    async def close(self) -> None:
        await self._http.aclose()

    async def engine(self) -> str:
        """Return the engine behind the server, `VLLM` or `SGLANG`; "" if the server names neither."""
        url = f"{self.base_url}/models"
        try:
            async with (
                asyncio.timeout(min(self._settings.timeout, CONNECT)),
                self._http.stream("GET", url, params=self._query) as response,
            ):
                listed = _json(await _whole(response)) if response.status_code == 200 else None
        except (TimeoutError, PassingError, httpx2.HTTPError):
            return ""
        models = listed.get("data") if isinstance(listed, dict) else None
        owners = [each.get("owned_by") for each in models or () if isinstance(each, dict)]
        return next((name for name in (VLLM, SGLANG) if name in owners), "")

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON object that the server answers with.

        Raises:
            PassingError: it is down, busy, broken, too slow, or answers with something else.
            RefusedError: it does not take this body.
            GraderError: it takes nothing from us: the key, the address or the model is wrong.
        """
        url = f"{self.base_url}/{path}"
        try:
            async with (
                asyncio.timeout(self._settings.timeout),
                self._http.stream("POST", url, json=body, params=self._query) as response,
            ):
                content = await _whole(response)
        except TimeoutError:
            raise PassingError(f"gave no whole answer within {self._settings.timeout:g} seconds") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            raise PassingError(f"cannot be reached ({self._line(error)})", unreachable=True) from None
        except httpx2.TransportError as error:
            raise PassingError(f"cut its answer ({self._line(error)})") from None
        except httpx2.RequestError as error:
            raise PassingError(f"gave an answer that cannot be read ({self._line(error)})") from None
        return self._checked(response, content)

    def _checked(self, response: httpx2.Response, content: bytes) -> dict[str, Any]:
        status = response.status_code
        parsed = _json(content)
        complaint, code = self._complaint(parsed)
        if status in _KEY_REFUSED:
            how = "requests without a key: set `key_env`, or `headers`"
            if self._settings.key_env or self.secret.headers():
                how = f"the key in {self._settings.key_env or '`headers`'}"
            # A 403 may be of the model or the region. What is said of a wrong key may hold a part of it.
            said = complaint if status == 403 else ""
            raise GraderError(f"{self.base_url} refuses {how} (HTTP {status}){said}")
        if 300 <= status < 400:
            location = self._line(response.headers.get("location", "elsewhere"))
            raise GraderError(f"{self.base_url} leads to {location} (HTTP {status}): set `base_url` to that")
        if 200 <= status < 300:
            if isinstance(parsed, dict) and not complaint:
                return parsed
            if complaint:
                raise PassingError(f"answers with an error{complaint}")
            is_html = content.lstrip()[:1] == b"<"
            what = "HTML, is `base_url` right?" if is_html else "something that is not JSON"
            raise PassingError(f"answers with {what}")
        reason = f"answers HTTP {status}{complaint}"
        if code == "insufficient_quota" or status == 402:
            raise GraderError(f"{self.base_url} {reason}")
        if status in _PASSING:
            raise PassingError(reason, retry_after(response.headers), busy=status in {429, 503, 529})
        if status in _ABOUT_THE_REQUEST:
            raise RefusedError(reason, code)
        raise GraderError(f"{self.base_url} {reason}: see `base_url`, `api` and `model` in [grader]")

    def _complaint(self, parsed: object) -> tuple[str, str]:
        """Return (": " and what the server says is wrong, its code); empty where it says nothing."""
        if not isinstance(parsed, dict):
            return "", ""
        error = parsed.get("error") or parsed.get("detail") or (parsed.get("object") == "error" and parsed)
        if isinstance(error, dict):
            code = error.get("code") or error.get("type") or ""
            return f": {self._line(error.get('message', error))}", str(code)
        return (f": {self._line(error)}", "") if error else ("", "")

    def _line(self, text: object) -> str:
        """Return one printable line without the key."""
        line = re.sub(r"[^\x20-\x7e\u00a0-\ud7ff]+", " ", self.secret.hidden(" ".join(str(text).split())))
        return line if len(line) <= 300 else f"{line[:300]}..."


async def _whole(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > LARGEST:
            raise PassingError(f"answers without end (more than {LARGEST / 2**20:g} MiB)")
    return bytes(content)


def _json(content: bytes) -> object:
    """Return what JSON says, also where NaN or half a surrogate pair is in it; None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def retry_after(headers: httpx2.Headers) -> float | None:
    """Return the seconds that a server asks to wait (RFC 9110, section 10.2.3); None for nothing readable."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    with contextlib.suppress(ValueError, OverflowError):
        when = email.utils.parsedate_to_datetime(value)
        if when.tzinfo is not None:
            return max(0.0, (when - datetime.datetime.now(datetime.UTC)).total_seconds())
    return None
