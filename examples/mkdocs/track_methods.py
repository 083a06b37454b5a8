"""An extension of griffe: methods of a track that are made of functions have docstrings, as in `help`."""

from __future__ import annotations

import copy
from typing import Any

import griffe

#: Who makes a method -> which of its arguments is the function that it has the docstring of.
MAKERS = {
    "on_loaded": 0,
    "on_graded": 0,
    "on_loader": 0,
    "on_folder": 0,
    "on_track": 1,
    "asking": 0,
    "estimating": 0,
}
#: Keywords that a method has beside those of its function: name -> type and default.
FURTHER = {
    "asking": {"progress": ("ShowProgress | None", "None"), "stop": ("Stop | None", "None")},
    "estimating": {"timed": ("bool", "False")},
}


class TrackMethods(griffe.Extension):
    """`leaderboard = on_loaded(leaderboard)` is a method, of a track or of an extension's accessor."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Puts the functions in the attributes' places, with `self` for their first argument."""
        if pkg.path != "trecexam":
            return
        accessors = [
            folder["accessor"]
            for folder in pkg["extensions"].modules.values()
            if "accessor" in folder.members
        ]
        for module in (pkg["api"], pkg["accessors"], *accessors):
            for owner in module.classes.values():
                if not owner.is_alias:
                    _make_methods(module, owner)


def _make_methods(module: griffe.Module, owner: griffe.Class) -> None:
    for name, member in list(owner.members.items()):
        call = member.is_attribute and member.value
        if isinstance(call, griffe.ExprCall) and str(call.function) in MAKERS:
            # The argument is the module's name, though the class has one that is spelled the same.
            made_of = call.arguments[MAKERS[str(call.function)]]
            # What it is wrapped in has its signature.
            while isinstance(made_of, griffe.ExprCall):
                made_of = made_of.arguments[0]
            function = module[str(made_of)]
            if function.is_alias:
                function = function.final_target
            method = copy.copy(function)
            method.name, method.parent = name, owner
            first, *others = function.parameters
            more = (
                griffe.Parameter(
                    further, kind=griffe.ParameterKind.keyword_only, annotation=what, default=default
                )
                for further, (what, default) in FURTHER.get(str(call.function), {}).items()
            )
            method.parameters = griffe.Parameters(griffe.Parameter("self", kind=first.kind), *others, *more)
            owner.members[name] = method
