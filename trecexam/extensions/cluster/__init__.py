"""Graders on the workers of a Ray cluster; only `driver.py` imports Ray."""

from __future__ import annotations

from functools import partial

from trecexam.extension import Extension
from trecexam.packages import install, missing_packages

#: Packages to install before using a cluster; "" if nothing is missing.
missing_for_cluster = partial(missing_packages, ("ray",), install("ray"))

EXTENSION = Extension(
    "cluster",
    services={"elsewhere": f"{__name__}.remote:CLUSTER"},
    settings={"ray": f"{__name__}.settings:RaySection"},
)
