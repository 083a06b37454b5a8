"""HTML of links, ratings, labels and intervals in the page's tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from trecexam.results.terminal import cut

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView

#: Characters of a long text that a table shows.
BEGINNING = 120


def link(address: str, name: str) -> Markup:
    """Return a link with an id as its text."""
    # Formatting by Markup takes five times as long, and tables have thousands.
    return Markup(f'<a href="{escape(address)}"><bdi>{escape(name)}</bdi></a>')


def text(words: str | None, most: int = BEGINNING) -> Markup:
    """Return the beginning of a text, in its own direction."""
    return Markup(f'<span dir="auto">{escape(cut(words, most))}</span>') if words else Markup("")


@lru_cache(maxsize=256)
def rating(value: int | None, words: tuple[str, ...] = ()) -> Markup:
    """Return a rating; `words` are names of the ratings from 0, if they have any."""
    if value is None or value < 0:
        return _NO_RATING
    return Markup('<span class="rating r{}">{}</span>').format(min(value, 5), named(value, words))


def named(value: int, words: Sequence[str]) -> str:
    """Return the name of a rating, or its number."""
    return words[value].replace("_", " ") if 0 <= value < len(words) else str(value)


@lru_cache(maxsize=256)
def label(value: int | None, least: int, words: tuple[str, ...] = ()) -> Markup:
    """Return a label or judgment, relevant from `least` on; `words` are names from 0."""
    if value is None:
        return Markup('<span class="soft">–</span>')  # noqa: RUF001
    relevant = " yes" if value >= least else ""
    return Markup('<span class="label{}">{}</span>').format(relevant, named(value, words))


def strip(state: QueryView, row_index: int) -> Markup:
    """Return a passage's ratings on all items, as small boxes."""
    ratings = state.ratings[row_index].tolist()
    listed = ", ".join(str(rating) if rating >= 0 else "none" for rating in ratings)
    boxes = "".join(_BOXES[min(rating, 5)] for rating in ratings)
    return Markup(f'<span class="strip" role="img" aria-label="ratings: {listed}">{boxes}</span>')


def count(value: int | None) -> str:
    """Return a whole number with thousands separators, or a dash."""
    return "–" if value is None else f"{value:,}"  # noqa: RUF001


_NO_RATING = Markup(
    '<span class="rating none"><span class="unseen">no rating</span><span aria-hidden="true">–</span></span>'  # noqa: RUF001
)
_BOXES = {
    rating: f'<span class="rating {f"r{rating}" if rating >= 0 else "none"}" aria-hidden="true">'
    f"{rating if rating >= 0 else '–'}</span>"  # noqa: RUF001
    for rating in range(-1, 6)
}
