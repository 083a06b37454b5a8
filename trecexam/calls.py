"""Makes methods of a track out of the features' functions: a call's arguments are spelled once, there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from trecexam.chosen import took
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extension import added_calls, named
from trecexam.files.track_lock import TrackLock
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import Job, ShowProgress, Stop
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import grades_notes
from trecexam.line.loaded_track import (
    AskedOf,
    LoadedTrack,
    TrackLoaders,
)
from trecexam.line.loader import TrackLoader
from trecexam.line.measure_names import names_of
from trecexam.line.track_graders import usable_folders
from trecexam.tables.result import Result
from trecexam.track import TrackFolder

P = ParamSpec("P")
R = TypeVar("R")
Noted = TypeVar("Noted", bound=Result)
C = TypeVar("C")


class OpenTrack(Protocol):
    """What has methods that are made here."""

    folder: TrackFolder
    _loaders: TrackLoaders

    @property
    def _loader(self) -> TrackLoader: ...
    @property
    def _is_joint(self) -> bool: ...


class Accessor:
    """What an extension adds to a track by one name (`track.exam`): its calls, made as a track's own are."""

    def __init__(self, track: Any) -> None:
        """Args: track: the `trecexam.Track` that it is of."""
        self.track = track
        self.folder: TrackFolder = track.folder
        self._loaders: TrackLoaders = track._loaders

    @property
    def _loader(self) -> TrackLoader:
        loader: TrackLoader = self.track._loader
        return loader

    @property
    def _is_joint(self) -> bool:
        return bool(self.track._is_joint)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_members(type(self))})

    @property
    def _name(self) -> str:
        """The name on a track: "judge_next" of JudgeNextAccessor."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__.removesuffix("Accessor")).lower()

    def __repr__(self) -> str:
        what = (type(self).__doc__ or "").strip().partition("\n")[0]
        of = self.folder.root.resolve().name
        return f"<track.{self._name} of {of!r}: {what} It has {', '.join(_members(type(self)).values())}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A call that an extension adds to this group.

            Raises:
                AttributeError: there is none of this name; it names the nearest.
            """
            for kind in added(type(self)) if not name.startswith("_") else ():
                if hasattr(kind, name):
                    return getattr(kind(self.track), name)
            members = _members(type(self))
            hint = did_you_mean(name, members, f"it has {', '.join(members.values())}")
            raise AttributeError(f"track.{self._name} has no '{name}'; {hint}")

    def _folder_of(self, function: Callable[..., object]) -> TrackFolder:
        """The track as the grader sees it that a call of this function would be about."""
        return _loader_for(self, function).folder


class Group(Accessor):
    """Calls of a track's own that extensions may add to (`track.verify`)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def added(group: type[Accessor]) -> list[type[Accessor]]:
    """What extensions add to a group of calls, to `Verify` for `track.verify`."""
    return [named(at) for at in added_calls(group.__name__.lower())]


def _members(kind: type) -> dict[str, str]:
    """What a group of calls has, by name -> as written after the group's name: ".fit()", "()"."""
    kinds = (*reversed(kind.__mro__), *(added(kind) if issubclass(kind, Accessor) else ()))
    members = {name: member for base in kinds for name, member in vars(base).items()}
    names = sorted(name for name in members if not name.startswith("_") and name not in ("track", "folder"))
    called = {"__call__": "()"} if "__call__" in members else {}
    return called | {name: f".{name}{'' if isinstance(members[name], property) else '()'}" for name in names}


def on_loaded(
    function: Callable[Concatenate[Assessment, P], R],
    joint: Callable[Concatenate[LoadedTrack, P], R | None] | None = None,
) -> Callable[Concatenate[OpenTrack, P], R]:
    """A method that loads the current track and calls `function` of it.

    Args:
        joint: answers for all of several graders where none is meant; where it gives None, one grader
            answers.

    Returns:
        A method with the arguments and the docstring of `function`, but for its first argument.
    """

    @wraps(function)
    def method(self: OpenTrack, /, *args: P.args, **kwargs: P.kwargs) -> R:
        _check_arguments(method, self, *args, **kwargs)
        if joint is not None and self._is_joint:
            answer = joint(self._loaders.load(), *args, **kwargs)
            if answer is not None:
                return answer
        loader = _loader_for(self, function, *args, **kwargs)
        return function(loader.load(bank_needed=_needs_bank(function, **kwargs)), *args, **kwargs)

    return _with_self(method, function)


def on_graded(
    function: Callable[Concatenate[Assessment, P], Noted], *, human: bool = True
) -> Callable[Concatenate[OpenTrack, P], Noted]:
    """As `on_loaded`, of a function whose `Result` is made from grades: its notes begin with those on grades.

    Args:
        human: as of `grades_notes`.
    """
    return on_loaded(_noted(function, human=human))


def on_track(
    joint: Callable[Concatenate[LoadedTrack, P], Noted], single: Callable[Concatenate[Assessment, P], Noted]
) -> Callable[Concatenate[OpenTrack, P], Noted]:
    """As `on_graded`; of several graders `joint` answers for all, unless one of them is meant."""
    noted = _noted(single)

    @wraps(single)
    def method(self: OpenTrack, /, *args: P.args, **kwargs: P.kwargs) -> Noted:
        _check_arguments(method, self, *args, **kwargs)
        if self._is_joint:
            return joint(self._loaders.load(), *args, **kwargs)
        return noted(self._loader.load(), *args, **kwargs)

    return _with_self(method, single)


def _noted(
    function: Callable[Concatenate[Assessment, P], Noted], *, human: bool = True
) -> Callable[Concatenate[Assessment, P], Noted]:
    """The function with notes on the grades in front of its result's own."""

    @wraps(function)
    def noted(track: Assessment, /, *args: P.args, **kwargs: P.kwargs) -> Noted:
        result = function(track, *args, **kwargs)
        return result if kwargs.get("official") else result.with_notes(*grades_notes(track, human=human))

    return noted


def on_loader(function: Callable[Concatenate[TrackLoader, P], R]) -> Callable[Concatenate[OpenTrack, P], R]:
    """As `on_loaded`, of a function that loads the track itself: it grades, or loads it in another way."""

    @wraps(function)
    def method(self: OpenTrack, /, *args: P.args, **kwargs: P.kwargs) -> R:
        _check_arguments(method, self, *args, **kwargs)
        return function(_loader_for(self, function, *args, **kwargs), *args, **kwargs)

    return _with_self(method, function)


def on_folder(function: Callable[Concatenate[TrackFolder, P], R]) -> Callable[Concatenate[OpenTrack, P], R]:
    """As `on_loaded`, of a function that needs the track's files and settings alone."""

    @wraps(function)
    def method(self: OpenTrack, /, *args: P.args, **kwargs: P.kwargs) -> R:
        _check_arguments(method, self, *args, **kwargs)
        folder = self.folder
        has_files = AskedOf.of(function).has_files
        if has_files is not None and self._is_joint:
            # A grader's files may be there that cannot grade.
            folder = next(filter(has_files, usable_folders(folder).values()), folder)
            took(str(folder.grader), tuple(self._loaders))
        return function(folder, *args, **kwargs)

    return _with_self(method, function)


def asking(job: Callable[Concatenate[TrackFolder, P], Job[R]]) -> Callable[..., R]:
    """A method that does a job, and has its arguments and docstring, but for the folder.

    Further arguments: `progress` is told how many of how many prompts are answered; `stop` is sent again and
    again, and True ends it early, with what there is.
    """

    @wraps(job)
    def method(
        self: OpenTrack,
        /,
        *args: Any,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
        **kwargs: Any,
    ) -> R:
        _check_arguments(method, self, *args, **kwargs)
        with TrackLock(self.folder.writing_lock_path, "calling this track's model"):
            return job(self.folder, *args, **kwargs).ask(progress, stop, self._loaders.spent_by_graders)

    return _with_self(method, job, {"progress": ShowProgress | None, "stop": Stop | None})


def estimating(job: Callable[Concatenate[TrackFolder, P], Job[Any]]) -> Callable[..., Estimate]:
    """A method that says what a job would take, in prompts ("cells"), tokens and money; it asks nobody.

    Further argument: with `timed` also how long, where a model in this process writes: a few prompts are
    tried, and not kept.
    """

    @wraps(job)
    def method(self: OpenTrack, /, *args: Any, timed: bool = False, **kwargs: Any) -> Estimate:
        _check_arguments(method, self, *args, **kwargs)
        return job(self.folder, *args, **kwargs).estimate(timed=timed)

    return _with_self(method, job, {"timed": bool})


def _loader_for(
    track: OpenTrack, function: Callable[..., object], *args: object, **kwargs: object
) -> TrackLoader:
    """That of the grader that is meant, else of the first that the function applies to.

    Raises:
        TrecexamError: the function is about documents, and the one that is meant labels none; or none is
            meant, and those that may label some cannot go on.
    """
    needs = AskedOf.of(function)
    named = _named_grader(track, function, *args, **kwargs) if track._is_joint else None
    if track._is_joint and named is None:
        bank_needed = _needs_bank(function, **kwargs)
        loader = track._loaders.first_asked(
            lambda each: needs.applies(each, *args, **kwargs), bank_needed=bank_needed
        )
        if needs.documents and not loader.load(bank_needed=bank_needed).of_documents:
            unable = track._loaders.load().unable
            if unable:
                raise TrecexamError(
                    "no grader that labels documents can go on; "
                    + "; ".join(f"{name}: {error}" for name, error in unable.items()),
                    path=track.folder.config_path,
                )
        took(loader.name, tuple(track._loaders))
        return loader
    loader = track._loader if named is None else track._loaders[named]
    if needs.documents and not loader.kind.ranks:
        other_graders = [name for name, other in track._loaders.items() if other.kind.ranks]
        raise TrecexamError(
            f"the grader {loader.name} labels no documents that runs rank"
            + (f": take --grader {', '.join(other_graders)}" if other_graders else ""),
            path=track.folder.config_path,
        )
    return loader


def _needs_bank(function: Callable[..., object], *, official: object = False, **kwargs: object) -> bool:
    """Return False for a function of a pool and its judgments, which no bank adds to."""
    return not (AskedOf.of(function).bank_optional or official)


def _named_grader(
    track: OpenTrack, function: Callable[..., object], *args: object, **kwargs: object
) -> str | None:
    """Return the grader of the first measure that a call names; None where it names no grader's."""
    given = inspect.signature(function).bind_partial(None, *args, **kwargs).arguments
    measures = [given["measure"]] if given.get("measure") else given.get("measures") or ()
    loaded = track._loaders.load() if measures else None
    graders = (loaded.whose(name) for name in names_of(measures) or ()) if loaded else ()
    return next(filter(None, graders), None)


def named_as_called(cls: type[C]) -> type[C]:
    """Gives the methods that are made here the names that they have in a class."""
    for name, method in vars(cls).items():
        if inspect.isfunction(method) and method.__name__ != name and not name.startswith("_"):
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
    return cls


def _check_arguments(method: Any, /, *args: Any, **kwargs: Any) -> None:
    """Refuses arguments that a method does not have, named as the caller wrote it.

    Raises:
        TypeError: with that name.
    """
    try:
        inspect.signature(method).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{method.__name__}() {error}") from None


def _with_self(
    method: Callable[..., R], function: Callable[..., object], further: Mapping[str, Any] | None = None
) -> Callable[..., R]:
    """The method, with the signature that `help` shows.

    Args:
        further: keywords that the function does not have, with their types.
    """
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    more = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if what is bool else None, annotation=what
        )
        for name, what in (further or {}).items()
    ]
    signed: Any = method
    signed.__signature__ = signature.replace(parameters=(self_parameter, *rest, *more))
    # Else `inspect` and `typing.get_type_hints` tell of an argument that the method has not.
    signed.__annotations__ = {
        **{name: what for name, what in method.__annotations__.items() if name != first.name},
        **(further or {}),
    }
    return method
