"""`track.support()`: whether what responses cite supports what they say."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.support.support import support


@named_as_called
class SupportAccessor(Accessor):
    """Whether what responses cite supports what they say: `track.support()`."""

    __call__ = on_loaded(support)
