"""The table of roles and addresses; addresses outside of the table are forbidden for all users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_NOBODY = frozenset[str]()
_ASSESSING = frozenset({"assessor", "organizer"})
_LOOKING = frozenset({"organizer", "reader"})
_ORGANIZING = frozenset({"organizer"})
_LOGGED_IN = _ASSESSING | _LOOKING
_EVERYBODY = _LOGGED_IN | {"visitor"}

#: A route's path -> the roles that may get it, and those that may send it a form: of pages that are of one
#: grader, which each grader of a track has below `/grader/NAME`, too.
_OF_GRADER: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    # An assessor sees neither runs nor grades nor what others say: these pages show none.
    "/assess": (_ASSESSING, _ASSESSING),
    "/assess/passage/{passage:name}": (_ASSESSING, _NOBODY),
    "/campaign": (_LOOKING, _NOBODY),
    "/campaign/agreement": (_LOOKING, _NOBODY),
    "/campaign/adjudicate": (_NOBODY, _ORGANIZING),
    "/": (_LOOKING, _NOBODY),
    "/run/{run:name}": (_LOOKING, _NOBODY),
    "/query/{query_id:name}": (_LOOKING, _NOBODY),
    "/query/{query_id:name}/passage/{doc_id:name}": (_LOOKING, _NOBODY),
    "/result/{result:name}": (_LOOKING, _NOBODY),
    "/section/{section:name}": (_LOOKING, _NOBODY),
    "/override": (_NOBODY, _ORGANIZING),
    "/bank/{query_id:name}": (_LOOKING, _NOBODY),
    "/bank/{query_id:name}/item": (_NOBODY, _ORGANIZING),
    "/bank/{query_id:name}/item/edit": (_NOBODY, _ORGANIZING),
    "/bank/{query_id:name}/item/retire": (_NOBODY, _ORGANIZING),
}

#: The same of all routes.
TABLE: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "/healthz": (_EVERYBODY, _NOBODY),
    "/static/{path:path}": (_EVERYBODY, _NOBODY),
    "/login": (_EVERYBODY, _EVERYBODY),
    "/logout": (_NOBODY, _LOGGED_IN),
    "/who": (_ORGANIZING, _ORGANIZING),
    "/state": (_LOOKING, _NOBODY),
    **_OF_GRADER,
    **{f"/grader/{{grader:name}}{path.rstrip('/')}": roles for path, roles in _OF_GRADER.items()},
}


def roles_for(method: str, path: str) -> frozenset[str]:
    """Return the roles that may request a path (without prefix); empty for unknown pages."""
    for pattern, (get, post) in _patterns():
        roles = post if method == "POST" else get
        if roles and pattern.match(path):
            return roles
    return _NOBODY


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], tuple[frozenset[str], frozenset[str]]], ...]:
    from starlette.routing import compile_path

    return tuple((compile_path(path)[0], roles) for path, roles in TABLE.items())
