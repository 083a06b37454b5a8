"""Conversion of test banks to the framework's nugget banks and back: questions, and nuggets as claims."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from autojudge_base import NuggetBanks
from autojudge_base.nugget_data import Creator, NuggetBank, NuggetClaim, NuggetQuestion

from converters.bank import read_bank, write_bank
from converters.records import Item
from trecexam.files.atomic import replace
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import LoadedTrack
from trecexam.scaffold import rag_graders

#: Kind of item -> file of the track with such items.
_FILES = {"nugget": rag_graders()["nuggets"]["bank"][0], "question": rag_graders()["rubric"]["bank"][0]}


def as_nugget_banks(track: LoadedTrack, titles: Mapping[str, str]) -> NuggetBanks:
    """Return the items of all graders, topic by topic, without retired ones.

    Args:
        titles: topic -> its title.
    """
    banks: dict[str, NuggetBank] = {}
    seen_ids: set[tuple[str, str]] = set()
    for each in track.graded_tracks.values():
        for query_id in each.bank.query_ids:
            for item in each.bank.items[query_id]:
                if item.kind in _FILES and (query_id, item.item_id) not in seen_ids:
                    seen_ids.add((query_id, item.item_id))
                    named = NuggetBank(query_id=query_id, title_query=titles.get(query_id))
                    banks.setdefault(query_id, named).add_nuggets(_nugget(item))
    return NuggetBanks(banks=banks)


def _nugget(item: Item) -> NuggetQuestion | NuggetClaim:
    # Without a time, the framework sets the current time, and equal banks would give different files.
    model, time = (None, None) if item.origin is None else (item.origin.model, item.origin.time)
    creator = Creator(is_human=item.origin is None, llm_model=model, creation_date=time)
    origin_fields = {"importance": item.importance or None, "creator": [creator]}
    if item.kind == "nugget":
        return NuggetClaim.from_lazy(item.query_id, item.text, claim_id=item.item_id, **origin_fields)
    answers = list(item.gold_answers) or None
    return NuggetQuestion.from_lazy(
        item.query_id, item.text, answers, question_id=item.item_id, **origin_fields
    )


def take_nugget_banks(root: Path, banks: NuggetBanks) -> None:
    """Replace the track's bank by these nuggets, if they differ."""
    items = list(_items(banks))
    folder = TrackFolder.open(root)
    for kind, name in _FILES.items():
        path, kind_items = folder.root / name, [item for item in items if item.kind == kind]
        if kind_items and _contents(kind_items) != (_contents(read_bank(path)) if path.exists() else None):
            buffer = io.BytesIO()
            write_bank(kind_items, buffer)
            replace(path, buffer.getvalue())


def _contents(items: Iterable[Item]) -> set[tuple[str, ...]]:
    """Return the fields of items that the framework's banks can hold."""
    return {
        (item.query_id, item.item_id, item.text, item.importance, *item.gold_answers)
        for item in items
        if not item.retired
    }


def _items(banks: NuggetBanks) -> Iterator[Item]:
    for query_id, bank in banks.banks.items():
        for question in (bank.nugget_bank or {}).values():
            answers = tuple(question.answers or ())
            item = Item(query_id, question.question_id, question.question, "question", answers)
            yield item._replace(importance=_importance(question))
        for claim in (bank.claim_bank or {}).values():
            item = Item(query_id, claim.claim_id, claim.claim, "nugget")
            yield item._replace(importance=_importance(claim))


def _importance(nugget: NuggetQuestion | NuggetClaim) -> str:
    return nugget.importance if nugget.importance in ("vital", "okay") else ""
