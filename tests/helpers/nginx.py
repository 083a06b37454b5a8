"""A real local nginx in front of the page, below a prefix."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIG = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = / {{ return 200 "another page"; }}
        location /trec/ {{
            proxy_pass {page}{stripped};
            {host}
        }}
    }}
}}
"""


def is_installed() -> bool:
    return shutil.which("nginx", path=_path()) is not None


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def nginx(folder: Path, port: int, page: str, *, preserved: bool, stripped: bool = False) -> Iterator[str]:
    """nginx on a port of 127.0.0.1, which forwards requests below /trec/ to the page.

    Args:
        preserved: the page gets the Host of the browser; else nginx's default, the page's address.
        stripped: the page gets paths without the prefix.

    Yields:
        The address of the page below nginx.
    """
    folder.mkdir()
    config = folder / "nginx.conf"
    config.write_text(
        CONFIG.format(
            user="user root;" if os.geteuid() == 0 else "",
            folder=folder,
            port=port,
            page=page,
            stripped="/" if stripped else "",
            host="proxy_set_header Host $http_host;" if preserved else "",
        )
    )
    program = shutil.which("nginx", path=_path())
    assert program
    with subprocess.Popen(
        [program, "-p", folder, "-c", config, "-e", folder / "error.log"], stderr=subprocess.DEVNULL
    ) as child:
        try:
            end = time.monotonic() + 60
            while not _answers(port):
                assert child.poll() is None, (folder / "error.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}/trec/"
        finally:
            child.terminate()
            child.wait(20)


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _path() -> str:
    # Debian installs it where only root's PATH looks.
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
