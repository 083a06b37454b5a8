"""Orders the items of each passage by similarity, for grading promising cells first."""

from __future__ import annotations

from collections.abc import Callable

from converters.errors import StoppedError
from trecexam.errors import TrecexamError
from trecexam.extensions.learn.encoding import Encoded, Encoder, TrackVectors
from trecexam.extensions.learn.learned_pool import track_encoder
from trecexam.line.assessment import Assessment
from trecexam.line.cell_order import ItemPlaces, item_places, places_by, ranks_items

#: So many missing cells are worth a minute of encoding.
WORTH_ENCODING = 1_000


def promising_places(
    track: Assessment,
    stop: Callable[[], bool] | None = None,
    progress: Encoded | None = None,
    encoder: Encoder | None = None,
) -> ItemPlaces | None:
    """Items by descending cosine with the passage; None if the order does not matter.

    What has no vector yet is encoded where at least `WORTH_ENCODING` cells are missing. With fewer, with one
    item a query, or where the encoder is not installed, items go by the words that they share with the
    passage, see `item_places`.

    Args:
        stop: asked while texts are encoded; True ends it.
        progress: called with how many texts are encoded, and of how many.
        encoder: None for `track_encoder`.
    """
    if not ranks_items(track) or not track.counts.missing:
        return None
    nothing_to_order = all(len(sheet.items) < 2 for sheet in track.sheets.values())
    if track.counts.missing < WORTH_ENCODING or nothing_to_order:
        return item_places(track)
    try:
        vectors = TrackVectors(track.folder.shared_state, encoder or track_encoder(track))
        texts = {
            query_id: [track.texts.get(doc_id, "") for doc_id in sheet.doc_ids]
            for query_id, sheet in track.sheets.items()
        }
        items = {query_id: [item.text for item in sheet.items] for query_id, sheet in track.sheets.items()}
        every = set().union(*texts.values(), *items.values())
        vectors.encode(every, _stoppable(progress, stop))
    except (TrecexamError, StoppedError, ImportError):
        # Not installed (a model's folder may be here without torch), or not to be fetched: the order is a
        # matter of taste, grading is not.
        return item_places(track)
    return {
        query_id: places_by(vectors.of(texts[query_id]) @ vectors.of(items[query_id]).T)
        if texts[query_id] and items[query_id]
        else item_order
        for query_id, item_order in item_places(track).items()
    }


def _stoppable(progress: Encoded | None, stop: Callable[[], bool] | None) -> Encoded:
    """Reports progress; raises `StoppedError` to end encoding."""

    def encoded(done: int, of: int) -> None:
        if stop is not None and stop():
            raise StoppedError
        if progress is not None:
            progress(done, of)

    return encoded
