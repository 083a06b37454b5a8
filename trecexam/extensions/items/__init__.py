"""Quality of the bank's items: grades, and items that do not tell runs apart."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension("items", features=(f"{__name__}.outputs:ITEMS",))
