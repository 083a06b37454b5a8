"""Writes the copy: follows all links from the leaderboard on, and puts a finished folder in place."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from starlette.types import ASGIApp

from converters.overrides import read_overrides
from trecexam.errors import TrecexamError
from trecexam.extensions.page.app import create_app
from trecexam.extensions.page.assessing import name_of, secret_of
from trecexam.extensions.page.export.asking import ask
from trecexam.extensions.page.export.blinding import Names, NeutralNames
from trecexam.extensions.page.export.copying import Copier
from trecexam.extensions.page.export.naming import file_of
from trecexam.extensions.page.export.placing import new_copy, refuse_others, write_marker
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.view import View
from trecexam.line.track_graders import folder_of, grader_names, open_folder
from trecexam.track import TrackFolder, folder_of_track

#: Pages that name files and people in too many ways to be shown blind.
_OPEN = ("/rejected", "/campaign", "/campaign/agreement")
#: The class of elements with people's reasons: these may name a run, a passage or a person in any words.
_REASONS = ("why",)


def export(
    root: Path,
    folder: Path,
    *,
    blind: bool = False,
    progress: Callable[[int, int], None] = lambda n, of: None,
) -> int:
    """Writes a read-only copy of a track's page.

    The copy is made beside the folder and put in its place as a whole: an earlier one stays until then.

    Args:
        root: of the track.
        folder: for the copy; there must be none, an empty one, or an earlier copy with nothing else in it.
        blind: neutral names for runs, passages, people and files.
        progress: is told files written and files known of, again and again.

    Returns:
        How many files it has.

    Raises:
        TrecexamError: the track cannot be read, or the folder has something else in it, or cannot be written.
    """
    track = open_folder(root)
    refuse_inside_track(folder, track)
    refuse_others(folder)
    with LiveTrack(root, apart=False) as live:
        live.wait_for(lambda state: state.view is not None or bool(state.trouble))
        if live.view is None:
            raise TrecexamError(live.trouble)
        app, view = create_app(live), live.view
        names = _neutral(track, view) if blind else Names()
        if blind:
            # Notes are on files, and the page with all of them is left out.
            view = _unnamed(
                replace(view, others={name: _unnamed(each) for name, each in view.others.items()})
            )
        try:
            with new_copy(folder) as made:
                # In a thread, as the caller's may run its own loop: a notebook's does.
                with ThreadPoolExecutor(1) as thread:
                    digests = thread.submit(_write, app, made, view, names, blind, progress).result()
                write_marker(made, digests, track="" if blind else view.name, blind=blind)
        except OSError as error:
            raise TrecexamError(f"cannot be written: {error.strerror or error}", path=folder) from error
    return len(digests)


def refuse_inside_track(folder: Path, track: TrackFolder) -> None:
    """Refuses a copy in a folder from which a track reads its runs, or which it writes.

    Raises:
        TrecexamError: it is in one of that track's, or of any other's.
    """
    inner = folder_of_track(folder, track)
    if inner is not None:
        raise TrecexamError(
            f"is in {inner}, which holds the track's runs, outputs or grades: give a folder elsewhere",
            path=folder,
        )


def _write(
    app: ASGIApp, folder: Path, view: View, names: Names, blind: bool, progress: Callable[[int, int], None]
) -> dict[str, str]:
    """Writes all pages; the sha256 of each file by its path."""
    waiting, queued = ["/"], {"/"}
    digests: dict[str, str] = {}
    while waiting:
        address = waiting.pop(0)
        static = address.startswith("/static/")
        answered = ask(app, address, view)
        path = folder / file_of(address if static else names.in_address(address))
        content = answered.content
        if answered.status == 200 and not static and path.suffix == ".html":
            copier = Copier(address, names, *(_OPEN, _REASONS) if blind else ((), ()))
            content = copier.copied(content.decode()).encode(errors="replace")
            new = [each for each in dict.fromkeys(copier.links) if each not in queued]
            queued.update(new)
            waiting += new
        elif answered.status == 200 and not static:
            content = names.in_table(content, path.suffix[1:])
        if answered.status != 200:
            raise TrecexamError(f"the page {address} cannot be shown: {answered.status}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digests[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
        progress(len(digests), len(queued))
    return digests


def _unnamed(view: View) -> View:
    return replace(view, name="Blind copy", input_notes=())


def _neutral(folder: TrackFolder, view: View) -> Names:
    secret = secret_of(folder)

    def digest(kind: str, name: str) -> str:
        return hmac.new(secret, f"{kind} {name}".encode(errors="surrogateescape"), "sha256").hexdigest()

    def numbered(kind: str, names: list[str]) -> Mapping[str, str]:
        # In an order that tells nothing, the same each time.
        ordered = sorted(set(names), key=lambda name: digest(kind, name))
        width = len(str(len(ordered)))
        return {name: f"{kind} {number:0{width}}" for number, name in enumerate(ordered, 1)}

    views = (view, *view.others.values())
    states = [state for each in views for state in map(each.query, each.heads) if state is not None]
    # Also overruled people: others may name them.
    people = {
        rating.who
        for each in (folder_of(folder, name) for name in grader_names(folder))
        for path in (each.overrides(), each.judgments())
        if path.is_file()
        for _, rating in read_overrides(path, lambda _: None)
    }
    doc_ids = {doc_id for state in states for doc_id in state.doc_ids}
    return NeutralNames(
        numbered("run", [run for each in views for run in each.runs]),
        numbered("person", [who for who in people if who]),
        numbered("file", [head.file for each in views for head in each.runs.values()]),
        lambda doc_id: f"passage {name_of(secret, '', doc_id)}",
        doc_ids,
    )
