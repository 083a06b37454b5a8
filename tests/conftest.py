"""Fixtures that every test may use."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import real_trec_eval
import threadpoolctl
from outside import outside
from support import RECORDED, REPORTED, HashGrader, Terminal, graded_track, make_small_track, update

from trecexam.results.plots.canvas import Drawing
from trecexam.results.result import Plot

# A busy machine is slow, not wrong. `bash tests/run.sh --all` is thorough.
for name, examples in (("trecexam", 20), ("thorough", 100)):
    hypothesis.settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    )
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "trecexam"))

#: The files of each of these folders share expensive fixtures: a track of TREC DL 2019, a Ray
#: cluster. Two Ray clusters on one machine disturb each other.
TOGETHER = ("tests/dl19/", "tests/extensions/cluster/")
#: The slowest tests begin first, so that no process is left alone with them at the end.
LONGEST = (
    *TOGETHER,
    "tests/test_docs.py",
    "tests/faults",
    "tests/extensions",
    "tests/features",
    "tests/graders",
)
#: Kills at every step are tested only by `bash tests/run.sh --all`.
KILLS = re.compile(r"::test_\w*kill")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distributes files of tests, and a few whole folders, over the processes of pytest-xdist."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            whole = (folder for folder in TOGETHER if nodeid.startswith(folder))
            return next(whole, nodeid.split("::", 1)[0])

    return ByFile(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose tests are all deselected by marks is not imported: Ray alone takes a second."""
    if not collection_path.name.startswith("test_"):
        return None
    marked = re.search(r"^pytestmark = \[?pytest\.mark\.(\w+)", collection_path.read_text(), re.MULTILINE)
    mark = "browser" if collection_path.parent.name == "browser" else marked and marked[1]
    return True if mark in re.findall(r"\bnot (\w+)", config.option.markexpr or "") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.nodeid))
    for item in items:
        if KILLS.search(item.nodeid):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    # Imported modules stay; garbage collection of them took a fifth of the time of tests/scores.
    gc.freeze()
    # Each update asks whether anything is frozen, and counting it takes as long as half of the update.
    gc.get_freeze_count = lambda: 1
    # Collecting less often saves another 9%.
    gc.set_threshold(20_000, 10, 10)
    # Each update and each fit looks for the libraries that have threads, among some hundred that are loaded.
    threadpoolctl.ThreadpoolController = functools.cache(threadpoolctl.ThreadpoolController)


def _turn(nodeid: str) -> int:
    return next((turn for turn, place in enumerate(LONGEST) if nodeid.startswith(place)), len(LONGEST))


#: Test -> its CPU seconds, with those of the processes that it waited for.
SPENT: Counter[str] = Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    spent = sum(os.times()[:4])
    # The reports of pytest-xdist's processes have it, too.
    outcome.get_result().cpu = spent - item.session.__dict__.get("_spent", spent)  # type: ignore[attr-defined]
    item.session.__dict__["_spent"] = spent


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SPENT[report.nodeid] += getattr(report, "cpu", 0.0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The CPU seconds of the slowest files; TRECEXAM_CPU_SECONDS names a file for those of all tests."""
    files: Counter[str] = Counter()
    for name, seconds in SPENT.items():
        files[name.split("::", 1)[0]] += seconds
    if len(files) > 20:
        terminalreporter.section(
            f"{sum(files.values()) / 60:.1f} CPU minutes; CPU seconds of the costliest files"
        )
        for name, seconds in files.most_common(30):
            terminalreporter.write_line(f"{seconds:6.1f} {name}")
    path = os.environ.get("TRECEXAM_CPU_SECONDS")
    if path:
        Path(path).write_text("".join(f"{seconds:.2f}\t{name}\n" for name, seconds in SPENT.most_common()))


class Logged(logging.Handler):
    """What was logged in a test, as with pytest's fixture of this name."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        record.message = record.getMessage()
        self.records.append(record)

    @property
    def messages(self) -> list[str]:
        return [record.message for record in self.records]

    @property
    def text(self) -> str:
        return "".join(f"{self.format(record)}\n" for record in self.records)

    def clear(self) -> None:
        self.records.clear()

    @contextlib.contextmanager
    def at_level(self, level: int | str, name: str | None = None) -> Iterator[None]:
        logger = logging.getLogger(name)
        before = logger.level
        logger.setLevel(level)
        yield
        logger.setLevel(before)


@pytest.fixture
def caplog() -> Iterator[Logged]:
    """The records that reach the root logger."""
    logged, root = Logged(), logging.getLogger()
    root.addHandler(logged)
    yield logged
    root.removeHandler(logged)


@pytest.fixture(scope="session")
def thorough() -> bool:
    """Whether there is time for more of the same cases, as in `bash tests/run.sh --all`."""
    return os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


@pytest.fixture
def small_track(tmp_path: Path) -> Path:
    return make_small_track(tmp_path / "track")


@pytest.fixture
def with_report(small_track: Path) -> None:
    """Makes updates of `small_track` write the report, too."""
    (small_track / "trecexam.toml").write_text(REPORTED)


@pytest.fixture
def updated(updated_once: Path, tmp_path: Path) -> Path:
    """A small track that was updated with a `HashGrader`."""
    return Path(shutil.copytree(updated_once, tmp_path / "track"))


@pytest.fixture(scope="session")
def updated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The track that `updated` copies."""
    root = make_small_track(tmp_path_factory.mktemp("updated") / "track")
    update(root)
    return root


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Context manager in which commands print as on a terminal without colour."""

    @contextlib.contextmanager
    def terminal() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr("trecexam.cli.reading.on_terminal", lambda: True)
            patch.setenv("NO_COLOR", "1")
            yield

    return terminal


@pytest.fixture
def hash_grader() -> HashGrader:
    return HashGrader()


@pytest.fixture
def graded(graded_once: Path, tmp_path: Path) -> Path:
    """A track that the `recorded` grader has graded; every pooled cell is in the recording.

    Its next update writes no report.
    """
    root = Path(shutil.copytree(graded_once, tmp_path / "track"))
    (root / "trecexam.toml").write_text(RECORDED)
    return root


@pytest.fixture(scope="session")
def graded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The track that `graded` copies."""
    return graded_track(tmp_path_factory.mktemp("graded") / "track")


@pytest.fixture(scope="session")
def dl19() -> Path:
    return outside("dl19")


@pytest.fixture(params=(9, 10), ids=("9.0.8", "10.0-rc3"))
def trec_eval(request: pytest.FixtureRequest) -> real_trec_eval.TrecEval:
    """NIST's program, in both versions; skipped with the reason if it cannot be built."""
    return real_trec_eval.build(request.param)


@pytest.fixture(scope="session", autouse=True)
def draw() -> Iterator[Callable[[Plot], Drawing]]:
    """Every update makes the whole report, but this draws plots only for tests with the mark `plots`."""
    from trecexam.results.plots import canvas

    with pytest.MonkeyPatch.context() as patch:
        drawn = canvas._drawn
        patch.setattr(canvas, "_drawn", _not_drawn)
        yield drawn


@pytest.fixture(autouse=True)
def drawn_where_marked(
    request: pytest.FixtureRequest, draw: Callable[[Plot], Drawing], monkeypatch: pytest.MonkeyPatch
) -> None:
    if request.node.get_closest_marker("plots"):
        monkeypatch.setattr("trecexam.results.plots.canvas._drawn", draw)


def _not_drawn(plot: Plot) -> Drawing:
    return Drawing(f'<svg id="{plot.name}"></svg>\n'.encode())


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """A test that leaves a thread running fails."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not t.daemon]
    for thread in left:
        thread.join(60)
    assert not [t for t in left if t.is_alive()]
