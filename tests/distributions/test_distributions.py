"""The wheel and the sdist: built, installed into an empty environment, and run, without network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from packaging.metadata import Metadata
from support import ROOT

import trecexam

FILES = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
PACKAGES = ("trecexam", "converters")


class Distributions(NamedTuple):
    """Distributions built from a copy of the source; the wheel is built from the sdist."""

    source: Path
    sdist: Path
    wheel: Path
    direct_wheel: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source)
    # setuptools includes files of this name by default.
    (source / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "test_errors.py", source / "tests")
    for arguments in (["--outdir", folder / "dist"], ["--wheel", "--outdir", folder / "direct"]):
        run(sys.executable, "-m", "build", "--no-isolation", *arguments, source)
    (sdist,) = folder.glob("dist/*.tar.gz")
    (wheel,) = folder.glob("dist/*.whl")
    (direct,) = folder.glob("direct/*.whl")
    return Distributions(source, sdist, wheel, direct)


@pytest.fixture(scope="module")
def installed(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with the wheel and, from this environment, its dependencies."""
    environment = tmp_path_factory.mktemp("installed") / "env"
    venv.create(environment, symlinks=True)
    # Its .pth files are not read, so an editable install of this checkout is not used.
    import click

    (site,) = environment.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", built.wheel)
    return environment / "bin"


def run(*words: str | Path, cwd: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def contents(archive: Path) -> dict[str, bytes]:
    """The files of a wheel or an sdist, without the top folder of the sdist."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        members = [member for member in sdist.getmembers() if member.isfile()]
        return {m.name.partition("/")[2]: sdist.extractfile(m).read() for m in members}  # type: ignore[union-attr]


def metadata(wheel: Path) -> Metadata:
    (name,) = (name for name in contents(wheel) if name.endswith(".dist-info/METADATA"))
    return Metadata.from_email(contents(wheel)[name], validate=True)


@pytest.mark.slow
def test_the_wheel_has_exactly_the_files_of_the_packages(built: Distributions) -> None:
    paths = [path for package in PACKAGES for path in (built.source / package).rglob("*") if path.is_file()]
    expected = {str(path.relative_to(built.source)): path.read_bytes() for path in paths}
    files = contents(built.wheel)
    assert {name: data for name, data in files.items() if ".dist-info/" not in name} == expected
    assert {Path(name).suffix for name in expected} >= {".py", ".html", ".css", ".js", ".txt", ".toml", ".gz"}


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel_as_the_source(built: Distributions) -> None:
    assert contents(built.wheel) == contents(built.direct_wheel)
    names = contents(built.sdist).keys()
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"} <= names
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.slow
def test_no_local_path_is_in_the_released_files(built: Distributions) -> None:
    for path in (ROOT, built.source, Path(sys.prefix), Path.home()):
        for archive in (built.wheel, built.sdist):
            files = contents(archive)
            assert not [name for name, data in files.items() if f"{path}/".encode() in data]


@pytest.mark.slow
def test_the_metadata_is_valid_and_has_what_an_index_shows(built: Distributions) -> None:
    read = metadata(built.wheel)
    assert (read.name, str(read.version)) == ("trecexam", trecexam.__version__)
    assert read.description_content_type == "text/markdown"
    assert read.description == (ROOT / "README.md").read_text()
    assert read.license_expression == "Apache-2.0"
    assert read.license_files == ["LICENSE"]
    assert str(read.requires_python) == "<3.14,>=3.11"
    assert read.project_urls
    assert {"offline", "serve", "docs"} <= {*(read.provides_extra or ())}
    # Otherwise an index rejects it.
    assert not [need for need in read.requires_dist or () if need.url]


@pytest.mark.slow
def test_the_installed_program_makes_and_grades_the_demo_track(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "trecexam", "--version", cwd=tmp_path) == (
        f"trecexam, version {trecexam.__version__}\n"
    )
    printed = run(installed / "trecexam", "demo", cwd=tmp_path)
    assert "dense-rerank\t8\t0.541667\t" in printed
    report = tmp_path / "trecexam-demo" / "out" / "report.html"
    assert f"report: {report.resolve()}" in printed
    assert "<svg" in report.read_text()


@pytest.mark.slow
def test_every_entry_point_of_the_installed_package_loads(installed: Path, tmp_path: Path) -> None:
    code = """
from importlib.metadata import distribution
import trecexam
from pathlib import Path
package = distribution("trecexam")
assert Path(trecexam.__file__).is_relative_to(Path(package.locate_file("")))
for point in package.entry_points:
    point.load()
    print(point.group, point.name)
"""
    loaded = run(installed / "python", "-W", "ignore", "-c", code, cwd=tmp_path).splitlines()
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    expected = {f"{group} {name}" for group, names in points.items() for name in names}
    assert set(loaded) == expected | {"console_scripts trecexam"}


def test_the_citation_file_is_valid_and_cites_this_version() -> None:
    """As required by the Citation File Format 1.2.0."""
    citation: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == trecexam.__version__
    assert citation["license"] == "Apache-2.0"
    assert citation["message"]
    assert len(citation["references"]) == 5
    for cited in (citation, *citation["references"]):
        assert cited["title"]
        assert cited["type"] in {"software", "article", "conference-paper", "generic"}
        for author in cited["authors"]:
            assert author.keys() in ({"name"}, {"family-names", "given-names"})
        assert re.fullmatch(r"10\.\d{4,9}/\S+", cited.get("doi", "10.1145/1"))
    readme = " ".join((ROOT / "README.md").read_text().split())
    for cited in citation["references"][:2]:
        assert cited["title"] in readme
