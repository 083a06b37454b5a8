"""Citation support: files and a report section of a support grader's labels."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension("support", features=(f"{__name__}.outputs:SUPPORT_FEATURE",))
