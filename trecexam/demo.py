"""The demo track, which comes with the package."""

from __future__ import annotations

import re
from pathlib import Path

from trecexam.config import CONFIG_NAME
from trecexam.errors import TrackError
from trecexam.files import atomic as files

DATA = Path(__file__).with_name("demo_track")
#: The settings of a track with four graders, and the files that only these graders read.
RAG_CONFIG = "rag.toml"
RAG_FILES = frozenset({"bank.nuggets.jsonl", "nuggets.jsonl", "support.tsv", "umbrela.qrels"})
#: Settings of a grader whose ratings `embedding` gave.
_RECORDED = re.compile(r'# [^\n]* `embedding` gave[^\n]*\nname = "recorded"\nrecorded = "[^"]*"\n')
_EMBEDDING = 'name = "embedding"\n'


def make_demo_track(root: Path | str, *, grade: bool = False, rag: bool = False) -> list[Path]:
    """Make the demo track in folder `root`: eight queries, 96 passages, 48 questions, seven runs, judgments.

    A second call restores missing files, and leaves edited files unchanged.

    Args:
        grade: Grade with `embedding`, which needs the extra `offline`, instead of recorded ratings.
        rag: Make a track with the four graders of a RAG track, and 32 nuggets.

    Returns:
        The files that were made.

    Raises:
        TrackError: The folder holds something else, or cannot be written.
    """
    root = Path(root)
    config = root / CONFIG_NAME
    settings = (DATA / (RAG_CONFIG if rag else CONFIG_NAME)).read_bytes()
    try:
        is_demo = config.is_file() and config.read_bytes().startswith(settings.splitlines()[0])
        if root.exists() and not is_demo and (not root.is_dir() or any(root.iterdir())):
            command = "trecexam demo --rag" if rag else "trecexam demo"
            raise TrackError(f"is not empty and is no track of `{command}`; give another folder", path=root)
        left_out = {RAG_CONFIG, CONFIG_NAME} | (set() if rag else RAG_FILES)
        sources = (path for path in sorted(DATA.rglob("*")) if path.is_file() and path.name not in left_out)
        # Settings first: they identify a folder that was made in part.
        contents = {config: settings} | {root / path.relative_to(DATA): path.read_bytes() for path in sources}
        made = [target for target in contents if not target.exists()]
        for target in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            files.replace(target, contents[target])
        if grade:
            text = _RECORDED.sub(_EMBEDDING, config.read_text(encoding="utf-8"))
            if _EMBEDDING not in text:
                raise TrackError("names a grader of your own; set its `name` to embedding", path=config)
            config.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    return made
