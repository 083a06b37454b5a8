"""The demo track, which comes with the package."""

from __future__ import annotations

from pathlib import Path

from trecexam.config import CONFIG_NAME
from trecexam.errors import TrackError
from trecexam.files import atomic as files

DATA = Path(__file__).with_name("demo_track")
#: How the demo's trecexam.toml says that its ratings are recorded, and how that they are to be made.
RECORDED = """\
# Ratings that `embedding` gave, for all passages and all items here.
name = "recorded"
recorded = "grades.jsonl.gz"
"""
GRADED_HERE = 'name = "embedding"\n'
RECORDED_SUPPORT = """\
# Labels that `embedding` gave to what rag-demo cites.
name = "recorded"
recorded = "support.tsv"
"""


def make_demo_track(root: Path | str, *, grade: bool = False) -> list[Path]:
    """Makes the demo track in folder `root`: eight queries, 96 passages, 80 items, seven runs, judgments.

    Doing it again puts back what is missing, and leaves what was edited unchanged.

    Args:
        grade: has the grader `embedding`, which needs the extra `offline`, in place of recorded ratings.

    Returns:
        The files that were made.

    Raises:
        TrackError: the folder holds something else, or cannot be written.
    """
    root = Path(root)
    config = root / CONFIG_NAME
    try:
        if root.exists() and not _is_demo(config) and (not root.is_dir() or any(root.iterdir())):
            raise TrackError("is not empty and is not a demo track; give another folder", path=root)
        # The settings first: by them a folder that was made in part is known.
        sources = sorted(DATA.rglob("*"), key=lambda path: (path.name != CONFIG_NAME, path))
        made = []
        for source in filter(Path.is_file, sources):
            target = root / source.relative_to(DATA)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                files.replace(target, source.read_bytes())
                made.append(target)
        if grade:
            text = config.read_text(encoding="utf-8")
            text = text.replace(RECORDED, GRADED_HERE).replace(RECORDED_SUPPORT, GRADED_HERE)
            if f"[graders.rubric]\n{GRADED_HERE}" not in text:
                raise TrackError(
                    "names a grader of your own; set its `name` in [graders.rubric]", path=config
                )
            config.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TrackError(f"cannot be written: {error.strerror}", path=error.filename or root) from None
    return made


def _is_demo(config: Path) -> bool:
    """Whether a trecexam.toml is the demo track's, edited or not: its first line is the same."""
    first = (DATA / CONFIG_NAME).read_bytes().splitlines()[0]
    return config.is_file() and config.read_bytes().startswith(first)
