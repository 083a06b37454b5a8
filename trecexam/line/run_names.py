"""What each run is called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def name_runs(tags: Mapping[Path, str], folder: Path) -> dict[Path, str]:
    """A display name for each run file.

    The run tag, as trec_eval shows it; where several files carry the same tag (Pyserini writes "Anserini"
    into all), each of them is named by its path in the drop folder without the extension.
    """
    count: dict[str, int] = {}
    for tag in tags.values():
        count[tag] = count.get(tag, 0) + 1
    names = {path: tag for path, tag in tags.items() if count[tag] == 1}
    used = set(names.values())
    for path in sorted(tags.keys() - names.keys()):
        full = path.relative_to(folder).as_posix()
        short = full.removesuffix(".gz")
        short = short.rsplit(".", 1)[0] if "." in Path(short).name else short
        names[path] = short if short not in used else full
        while names[path] in used:
            names[path] += "'"
        used.add(names[path])
    return names
