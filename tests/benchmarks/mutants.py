"""The share of a sample of mutants of `scores/` and `line/` that the tests of these folders kill.

python tests/benchmarks/mutants.py --into FOLDER [--sample 200] [--seed 33] [--out TSV] [FOLDER:TESTS ...]

A mutant changes one comparison, operator, constant, condition or return value. Each is run only
with the tests that execute its line (by coverage.py with contexts), the fastest first, until one fails; a
mutant without such a test survives. A test that takes ten times its usual time counts as failed. Everything
runs in forks of a process that has the libraries loaded: a mutant costs its tests and no imports.

Needs `coverage`. The latest shares are in tests/benchmarks/results/mutants.md.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("trecexam/scores:tests/scores", "trecexam/line:tests/line")
#: Seconds of tests that a mutant is given, by what they took without it.
ENOUGH = 20.0
#: So many tests are tried before the others.
FIRST = 12
#: What every process would import anew.
LIBRARIES = (
    "numpy", "scipy.stats", "pandas", "pytest", "ir_measures", "pydantic", "click", "orjson",
    "pyarrow", "matplotlib.pyplot", "jinja2",
)  # fmt: skip

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Pow: ast.Mult,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: the kind, where it is, and which node of the file in `ast.walk`'s order."""

    path: str
    line: int
    kind: str
    node: int
    was: str


def candidates(path: Path) -> Iterator[Mutant]:
    """All changes of a file that can be told from it."""
    tree = ast.parse(path.read_text())
    passed: set[int] = set()
    for node in ast.walk(tree):
        for part in _said_only(node):
            passed.update(id(inner) for inner in ast.walk(part))
    for place, node in enumerate(ast.walk(tree)):
        kind = None if id(node) in passed else _kind(node)
        if kind is not None:
            name = path.relative_to(ROOT).as_posix()
            was = ast.unparse(node)[:80].replace("\n", " ")
            yield Mutant(name, node.lineno, kind, place, was)  # type: ignore[attr-defined]


def _said_only(node: ast.AST) -> Iterator[ast.AST]:
    """Parts that no run depends on: types, what type checkers alone import, messages of errors."""
    for name in ("annotation", "returns"):
        if isinstance(getattr(node, name, None), ast.AST):
            yield getattr(node, name)
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        yield node
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"__all__", "__slots__"}:
        yield node
    if isinstance(node, (ast.Raise, ast.Assert)):
        yield node


def _kind(node: ast.AST) -> str | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARED:
        return "comparison"
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in COMPUTED:
        return "arithmetic"
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return "constant"
    if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return "boolean"
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        return "return"
    return None


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def changed(mutant: Mutant) -> str:
    """The file's text with the change."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    node: Any = next(node for place, node in enumerate(ast.walk(tree)) if place == mutant.node)
    if mutant.kind == "comparison":
        node.ops[0] = COMPARED[type(node.ops[0])]()
    elif mutant.kind == "arithmetic":
        node.op = COMPUTED[type(node.op)]()
    elif mutant.kind == "constant":
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif mutant.kind == "return":
        node.value = ast.Constant(None)
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    else:
        inner = copy.copy(node.operand)
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), inner)
    return ast.unparse(ast.fix_missing_locations(tree))


def covered(tests: list[str], into: Path) -> tuple[dict[str, dict[int, set[str]]], dict[str, float]]:
    """Which test comes past which line of which file, and how many seconds each test takes."""
    conf = into / "coveragerc"
    conf.write_text(f"[run]\ndata_file = {into / 'data'}\nsource = trecexam\ncore = ctrace\n")
    (into / "contexts.py").write_text(PLUGIN)
    env = {**os.environ, "PYTHONPATH": f"{into}:{os.environ.get('PYTHONPATH', '')}", "MUTANTS_RC": str(conf)}
    words = ["-q", "--no-header", "-p", "contexts", "-p", "no:cacheprovider", *tests]
    if not (into / "data").exists():
        subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env, check=False)
    from coverage import CoverageData

    data = CoverageData(str(into / "data"))
    data.read()
    lines = {
        Path(name).relative_to(ROOT).as_posix(): {
            line: {context for context in contexts if context}
            for line, contexts in data.contexts_by_lineno(name).items()
        }
        for name in data.measured_files()
    }
    spent = dict(row.rsplit("\t", 1) for row in (into / "seconds").read_text().splitlines())
    return lines, {name: float(seconds) for name, seconds in spent.items()}


PLUGIN = """
import os
from pathlib import Path

import coverage
import pytest

measuring = coverage.Coverage(config_file=os.environ["MUTANTS_RC"])
measuring.start()
seconds = Path(os.environ["MUTANTS_RC"]).with_name("seconds").open("w")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    measuring.switch_context(item.nodeid)
    yield
    measuring.switch_context("")


def pytest_runtest_logreport(report):
    if report.when == "call" and report.passed:
        seconds.write(f"{report.nodeid}\\t{report.duration:.4f}\\n")


def pytest_sessionfinish():
    measuring.stop()
    measuring.save()
    seconds.close()
"""


def chosen(
    mutant: Mutant, lines: dict[str, dict[int, set[str]]], spent: dict[str, float]
) -> tuple[list[str], bool]:
    """The tests that come past a mutant, the fastest first, and whether there were more than time allows.

    What runs at import only is tried by all that come past the file.
    """
    of_file = lines.get(mutant.path, {})
    of_line = of_file.get(mutant.line, set()) or (
        set().union(*of_file.values()) if mutant.line in of_file else set()
    )
    ordered = sorted((name for name in of_line if name in spent), key=lambda name: (spent[name], name))
    taken, total = [], 0.0
    for name in ordered:
        if total + spent[name] > ENOUGH and taken:
            return taken, True
        taken.append(name)
        total += spent[name]
    return taken, False


def killed(mutant: Mutant, tests: list[str], limit: float, *, control: bool = False) -> str:
    """Runs the tests on the mutant in a forked process: lives, killed, or timeout.

    Args:
        control: on the file as it is, which must live.
    """
    path = ROOT / mutant.path
    before = path.read_bytes()
    path.write_text(ast.unparse(ast.parse(before)) if control else changed(mutant))
    try:
        child = os.fork()
        if child == 0:
            _run(tests)
        end = time.monotonic() + limit
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                # 0 all passed; 5 none was found, which must not pass for a survivor.
                return {0: "lives", 5: "no tests"}.get(os.waitstatus_to_exitcode(status), "killed")
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "timeout"
    finally:
        path.write_bytes(before)


def _run(tests: list[str]) -> None:
    import pytest

    os.setpgid(0, 0)
    sys.dont_write_bytecode = True
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    status = 3
    with contextlib.suppress(BaseException):
        status = int(
            pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])
        )
    os._exit(status)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", default=FOLDERS, metavar="FOLDER:TESTS")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument(
        "--into",
        type=Path,
        required=True,
        help="A folder for what coverage.py writes; what is there already is taken.",
    )
    parser.add_argument("--out", type=Path, help="A row for each mutant. Default: mutants.tsv in --into.")
    given = parser.parse_args()
    out: Path = given.out or given.into / "mutants.tsv"
    os.chdir(ROOT)
    given.into.mkdir(parents=True, exist_ok=True)
    pairs = [pair.split(":") for pair in given.folders]
    files = sorted(path for folder, _ in pairs for path in (ROOT / folder).rglob("*.py"))
    everything = [mutant for path in files for mutant in candidates(path)]
    # In the order drawn: who stops early has a sample all the same.
    sample = random.Random(given.seed).sample(everything, min(given.sample, len(everything)))
    print(f"{len(everything)} possible mutants in {len(files)} files, {len(sample)} sampled", flush=True)
    lines, spent = covered([tests for _, tests in pairs], given.into)
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    rows = ["path\tline\tkind\twas\ttests\tresult"]
    for number, mutant in enumerate(sample, 1):
        tests, more = chosen(mutant, lines, spent)
        limit = 60.0 + 10 * sum(spent[test] for test in tests)
        if tests and number % 10 == 1 and killed(mutant, tests[:FIRST], limit, control=True) != "lives":
            sys.exit(f"tests fail without a mutant: {tests}")
        # Few tests first: most mutants are found by them, and each file of tests takes time to be read.
        result = killed(mutant, tests[:FIRST], limit) if tests else "lives"
        if result == "lives" and tests[FIRST:]:
            result = killed(mutant, tests[FIRST:], limit)
        note = f"{len(tests)}{'+' if more else ''}"
        rows.append(f"{mutant.path}\t{mutant.line}\t{mutant.kind}\t{mutant.was}\t{note}\t{result}")
        print(f"{number} {rows[-1]}", flush=True)
        found = [row.rsplit("\t", 1)[1] for row in rows[1:]]
        dead = sum(result in {"killed", "timeout"} for result in found)
        share = f"{dead} killed, {dead / len(found):.1%}"
        head = f"# seed {given.seed}, {len(found)} of {len(everything)} mutants: {share}"
        out.write_text("\n".join([head, rows[0], *sorted(rows[1:])]) + "\n")
    print(head)


if __name__ == "__main__":
    main()
