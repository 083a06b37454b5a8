"""Item response theory: which examinee is good, which item is good. Pure functions on arrays.

Knows no file, no track and no grader: everywhere an examinee is a row and an item a column of a response
matrix with 1 (right, covered), 0 (wrong, not covered) and NaN (no response).

>>> import numpy as np
>>> from trecexam.extensions.exams.irt import Settings, fit
>>> found = fit(np.eye(4) + np.tri(4), Settings.of("1pl"))  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.components import Components
    from trecexam.extensions.exams.irt.fitting import Fit, fit
    from trecexam.extensions.exams.irt.improvement import Improvement, improve
    from trecexam.extensions.exams.irt.information import exam_information, item_information
    from trecexam.extensions.exams.irt.model import probability
    from trecexam.extensions.exams.irt.settings import Settings

_HOME = {
    "Components": "components",
    "Fit": "fitting",
    "Improvement": "improvement",
    "Settings": "settings",
    "fit": "fitting",
    "improve": "improvement",
    "item_information": "information",
    "probability": "model",
    "exam_information": "information",
}
__all__ = [
    "Components",
    "Fit",
    "Improvement",
    "Settings",
    "exam_information",
    "fit",
    "improve",
    "item_information",
    "probability",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
