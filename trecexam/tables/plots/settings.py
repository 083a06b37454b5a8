"""matplotlib's settings while something of ours is drawn."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trecexam.tables.plots.style import RC

#: The settings are the process's: two threads must not draw at once. A figure that is saved is drawn, too.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def own_settings(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Our settings of matplotlib in place of the user's, for one thread at a time."""
    import matplotlib

    with _ONE_AT_A_TIME, warnings.catch_warnings(), matplotlib.rc_context():
        # Letters that the PNG's font lacks become boxes there; browsers have other fonts for them.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        own: Any = {key: value for key, value in matplotlib.rcParamsDefault.items() if "backend" not in key}
        matplotlib.rcParams.update(own | RC | dict(more or {}))
        yield
