"""Runs graders on the workers of a Ray cluster; only `driver.py` imports Ray."""

from __future__ import annotations

from functools import partial

from trecexam.extension import Extension
from trecexam.packages import install, missing_packages

#: What must be installed before a cluster can be used; "" where nothing is missing.
missing_for_cluster = partial(missing_packages, ("ray",), install("ray"))

EXTENSION = Extension(
    "cluster",
    services={"elsewhere": f"{__name__}.remote:CLUSTER"},
    settings={"ray": f"{__name__}.settings:RaySection"},
)
