"""What a grader's stored answers were made on: devices, dtypes, versions; and whether they are mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Environments(NamedTuple):
    """Environments of answers, see `Grader`, with how many answers each has, the most first.

    `unknown` counts answers of graders that say nothing of it.
    """

    known: tuple[tuple[Mapping[str, str], int], ...]
    unknown: int

    @classmethod
    def of_rows(cls, rows: list[tuple[Mapping[str, str] | None, int]]) -> Environments:
        """Make it of `GradeStore.environments`."""
        environments = tuple((details, count) for details, count in rows if details is not None)
        return cls(environments, sum(count for details, count in rows if details is None))

    @property
    def mixed(self) -> tuple[str, ...]:
        """The names, sorted, of what differs between answers, as far as known."""
        names = {name for details, _ in self.known for name in details}
        return tuple(sorted(name for name in names if len({each.get(name) for each, _ in self.known}) > 1))

    def as_json(self) -> dict[str, Any]:
        """For manifest.json; {} where nothing is known. Counts only where there are several."""
        if not self.known:
            return {}
        several = len(self.known) > 1 or self.unknown > 0
        graded_on = [{**details, **({"answers": n} if several else {})} for details, n in self.known]
        unknown = {"unknown": self.unknown} if self.unknown else {}
        return {"environments": {"mixed": list(self.mixed), "graded_on": graded_on, **unknown}}

    def summary(self) -> str:
        """As "12,000 answers on cpu float32, 3,000 on cuda bfloat16", with whatever else differs."""
        further = [name for name in self.mixed if name not in ("device", "dtype")]
        texts = []
        for index, (details, count) in enumerate(self.known):
            where = [details[name] for name in ("device", "dtype") if name in details]
            where += [f"{name} {details[name]}" for name in further if name in details]
            texts.append(f"{count:,}{'' if index else ' answers'} on {' '.join(where)}")
        if self.unknown:
            texts.append(f"{self.unknown:,} on what is not known")
        return ", ".join(texts)
