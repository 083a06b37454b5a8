"""`track.support()`: how well cited passages support responses."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.support.comparison import support_agreement
from trecexam.extensions.support.support import support


@named_as_called
class SupportAccessor(Accessor):
    """Support of responses by cited passages: `track.support()`."""

    __call__ = on_loaded(support)
    agreement = on_loaded(support_agreement)
