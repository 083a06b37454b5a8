"""[ray] of trecexam.toml."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from trecexam.config import Section


class RaySection(Section):
    """A Ray cluster whose workers do the grading; grades and their keys are the same with it and without."""

    address: str | None = Field(None, examples=["auto"])
    """"auto": the Ray cluster that this machine belongs to; or HOST:PORT of its head. Unset: models run in
    this process. openai and recorded run no model and do not need it."""
    workers: int | None = Field(None, ge=1, examples=[8])
    """Workers at most. Unset: one per GPU of the cluster; where it has none, as many as its CPUs allow."""
    gpus_per_worker: float | None = Field(None, ge=0, examples=[1])
    """GPUs of a worker; 0.5 lets two share one. Unset: 1, or 0 where the cluster has none."""
    cpus_per_worker: float = Field(1, ge=0)
    """CPUs of a worker, and its threads where it has no GPU."""
    wait: float = Field(30.0, ge=0)
    """Seconds without any worker after which grading ends for now; `watch` tries again each minute."""
    batch_seconds: float = Field(10.0, gt=0)
    """Seconds of work that go to a worker at a time, and that are done again when it dies."""

    @property
    def is_cluster(self) -> bool:
        return self.address is not None

    @field_validator("address")
    @classmethod
    def _address_of_a_cluster(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(
            r"auto|[^\s/:@]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}", value
        ):
            raise ValueError(
                'give "auto", or HOST:PORT as `ray start` says it; this machine must belong to the cluster, '
                "so that ray:// is rejected"
            )
        return value

    @field_validator("gpus_per_worker")
    @classmethod
    def _whole_or_a_part(cls, value: float | None) -> float | None:
        if value is not None and value > 1 and value != int(value):
            raise ValueError("give a part of one GPU, or a whole number")
        return value
