"""One request to a server and its answer, or one word on what is wrong. Repeats nothing itself."""

from __future__ import annotations

import asyncio
import datetime
import email.utils
import json
import logging
import re
from typing import Any

import httpx2

from trecexam.config import LanguageModelSection
from trecexam.errors import GraderError
from trecexam.graders.server.messages import PassingError
from trecexam.graders.server.secret import Secret

#: Bytes of an answer. A grade takes a few hundred: more is a server that does not end.
LARGEST = 4 * 2**20
#: Seconds until a server must have taken a connection.
CONNECT = 10.0
_FORBIDDEN = 403
_KEY_REFUSED = frozenset({401, _FORBIDDEN})
#: Engines that batch requests, as `/models` names the owner of a model.
VLLM, SGLANG = "vllm", "sglang"
_PASSING = frozenset({408, 409, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})


class RefusedError(Exception):
    """The server does not take this request, and would not take it again.

    Attributes:
        reason: what follows "the server ...".
        code: the server's own word for it, "" where it has none.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        self.reason, self.code = reason, code
        super().__init__(reason)


class Client:
    """A server. To be made and used in one event loop.

    Raises:
        GraderError: the address or the environment's proxies are wrong.
    """

    def __init__(self, base_url: str, secret: Secret, settings: LanguageModelSection) -> None:
        # At DEBUG these log what a server sends, and that may hold the key.
        for name in ("httpcore2", "httpx2"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self.base_url, self.secret, self._settings = base_url, secret, settings
        self._query = settings.query or None
        # The deadline is on the whole answer: a server that sends a byte now and then keeps to any other.
        try:
            self._http = httpx2.AsyncClient(
                headers={"User-Agent": "trecexam", **secret.headers()},
                timeout=httpx2.Timeout(None, connect=CONNECT),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                follow_redirects=False,
            )
            httpx2.URL(base_url)
        except httpx2.InvalidURL as error:
            raise GraderError(f"`base_url` {base_url} in [grader] is not an address: {error}") from None
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
        named = models if isinstance(models, list) else []
        owners = {str(model.get("owned_by")) for model in named if isinstance(model, dict)}
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
            said = complaint if status == _FORBIDDEN else ""
            raise GraderError(f"{self.base_url} refuses {how} (HTTP {status}){said}")
        if 300 <= status < 400:
            location = self._line(response.headers.get("location", "elsewhere"))
            raise GraderError(f"{self.base_url} leads to {location} (HTTP {status}): set `base_url` to that")
        if 200 <= status < 300:
            if isinstance(parsed, dict) and not complaint:
                return parsed
            if complaint:
                raise PassingError(f"answers with an error{complaint}")
            html = content.lstrip()[:1] == b"<"
            raise PassingError(
                "answers with HTML, is `base_url` right?"
                if html
                else "answers with something that is not JSON"
            )
        reason = f"answers HTTP {status}{complaint}"
        if code == "insufficient_quota" or status == 402:
            raise GraderError(f"{self.base_url} {reason}")
        if status in _PASSING:
            raise PassingError(reason, retry_after(response.headers), busy=status in {429, 503, 529})
        if status in _ABOUT_THE_REQUEST:
            raise RefusedError(reason, code)
        raise GraderError(f"{self.base_url} {reason}: see `base_url`, `api` and `model` in [grader]")

    def _complaint(self, parsed: object) -> tuple[str, str]:
        """(": " and what the server says is wrong, its code) of an answer; empty where it says nothing."""
        if not isinstance(parsed, dict):
            return "", ""
        error = parsed.get("error") or parsed.get("detail") or (parsed.get("object") == "error" and parsed)
        if not error:
            return "", ""
        code = str((error.get("code") or error.get("type") or "") if isinstance(error, dict) else "")
        text = error.get("message", error) if isinstance(error, dict) else error
        return f": {self._line(text)}", code

    def _line(self, text: object) -> str:
        """One printable line without the key."""
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
    """What JSON says, also where NaN or half a surrogate pair is in it; None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, section 10.2.3); None where it says nothing readable."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
        return float(value)
    try:
        when = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        return None
    return max(0.0, (when - datetime.datetime.now(datetime.UTC)).total_seconds())
