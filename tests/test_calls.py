from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trecexam
from trecexam import accessors
from trecexam.api import Track
from trecexam.calls import Accessor, added, on_folder, on_loaded, on_loader
from trecexam.folder import TrackFolder
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.loader import TrackLoader


def depth(track: Assessment, more: int = 0, *, times: int = 1) -> int:
    """The depth, and more."""
    return (track.config.track.depth + more) * times


def loads(loader: TrackLoader, wanted: int) -> int:
    return loader.load(depth=wanted).config.track.depth


def root(folder: TrackFolder, name: str = "out") -> Path:
    return folder.root / name


def test_a_method_calls_the_function_with_the_current_state_of_the_track(small_track: Path) -> None:
    class Opened(Track):
        depth = on_loaded(depth)
        loads = on_loader(loads)
        place = on_folder(root)

    with Opened(TrackLoaders(TrackFolder.open(small_track))) as track:
        whole = track.depth()
        assert track.depth(2, times=3) == (whole + 2) * 3
        assert track.loads(wanted=1) == whole
        assert track.place("x") == small_track / "x"
        with pytest.raises(TypeError, match="unexpected keyword argument 'depths'"):
            track.depth(depths=1)  # type: ignore[call-arg]


def test_help_shows_the_arguments_and_the_docstring_of_the_function() -> None:
    method = on_loaded(depth)
    assert str(inspect.signature(method)) == "(self, more: 'int' = 0, *, times: 'int' = 1) -> 'int'"
    assert inspect.getdoc(method) == "The depth, and more."
    assert set(inspect.get_annotations(method)) == {"more", "times", "return"}


def test_the_track_has_few_own_methods_and_documents_every_call() -> None:
    calls: dict[str, Callable[..., Any]] = {
        name: call for name, call in inspect.getmembers(Track, inspect.isfunction) if name[0] != "_"
    }
    own = [name for name, call in vars(Track).items() if getattr(call, "__module__", "") == "trecexam.api"]
    for group in vars(accessors).values():
        if isinstance(group, type) and issubclass(group, Accessor) and group is not Accessor:
            for kind in (group, *added(group)):
                members = inspect.getmembers(kind, inspect.isfunction)
                calls |= {f"{kind.__name__}.{name}": call for name, call in members if name[0] != "_"}
    assert len(calls) > 30
    assert len(own) <= 20
    assert [name for name, call in calls.items() if not call.__doc__] == []
    assert {name for name, call in calls.items() if "self" not in inspect.signature(call).parameters} == set()


def test_the_name_of_a_method_is_the_one_it_is_called_by(small_track: Path) -> None:
    assert trecexam.Track.agreement.__name__ == "agreement"
    with trecexam.open_track(small_track) as track, pytest.raises(TypeError, match=r"^agreement\(\) got an"):
        track.agreement(foo=1)  # type: ignore[call-arg]
