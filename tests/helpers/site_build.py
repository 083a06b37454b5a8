"""The site of the docs: built as its readers get it, and served."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support import ROOT


def build_site(folder: Path) -> Path:
    """The folder, with the site that `mkdocs build --strict` makes there."""
    # With --quiet, nothing is strict.
    words = ["build", "--strict", "-f", ROOT / "examples" / "mkdocs.yml", "-d", folder]
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", *words],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def site_served(folder: Path) -> Iterator[str]:
    """The address at which the folder's files are served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
