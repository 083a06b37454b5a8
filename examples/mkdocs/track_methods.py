"""An extension of griffe: methods of a track that are made of functions have docstrings, as in `help`."""

from __future__ import annotations

import copy
from typing import Any

import griffe

#: What makes a method, and the place among its arguments of the function that has the docstring.
MAKERS = {"on_loaded": 0, "on_graded": 0, "on_loader": 0, "on_folder": 0, "on_track": 1}


class TrackMethods(griffe.Extension):
    """`leaderboard = on_loaded(leaderboard)` in `trecexam.api.Track` is a method."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Puts the functions in the attributes' places, with `self` for their first argument."""
        if pkg.path != "trecexam":
            return
        track = pkg["api.Track"]
        for name, member in list(track.members.items()):
            call = member.is_attribute and member.value
            if isinstance(call, griffe.ExprCall) and str(call.function) in MAKERS:
                # The argument is the module's name, though the class has one that is spelled the same.
                function = pkg[f"api.{call.arguments[MAKERS[str(call.function)]]}"]
                if function.is_alias:
                    function = function.final_target
                method = copy.copy(function)
                method.name, method.parent = name, track
                first, *others = function.parameters
                method.parameters = griffe.Parameters(griffe.Parameter("self", kind=first.kind), *others)
                track.members[name] = method
