"""A track folder: where things are. Nothing here reads a file's content but trecexam.toml."""

from __future__ import annotations

import os
from dataclasses import dataclass
from glob import escape
from pathlib import Path, PurePath

from converters.unpacking import ENDINGS
from trecexam.config import CONFIG_NAME, TrackConfig, TrackSection, load_config
from trecexam.config.track_config import bank_commands
from trecexam.errors import LackingError, TrackError, quoted

#: A prompt of this ending is a file of the user's, not a published one.
PROMPT_SUFFIXES = (".toml", ".jinja", ".jinja2", ".j2")
#: Where a track's bank is, if its settings do not say.
BANK_PATTERNS = ("bank.*jsonl", *(f"bank.*jsonl{ending}" for ending in ENDINGS))
#: Names of input files, if the settings do not say; the first that exists counts.
_NAMES = {
    "queries": tuple(f"queries.{e}" for e in ("tsv", "jsonl", "json", "xml", "tsv.gz", "jsonl.gz")),
    "passages": ("passages.jsonl", "passages.jsonl.gz"),
    "qrels": ("qrels.txt", "qrels.txt.gz"),
    "official_leaderboard": tuple(f"official_leaderboard.{e}" for e in ("json", "tsv", "txt", "jsonl")),
}
#: The variable of the environment that trusts the code of tracks, as `--trust-code` does.
TRUST_CODE = "TRECEXAM_TRUST_CODE"
#: Outputs that a track with several graders has of all of them in out/.
OF_ALL = ("leaderboard.tsv", "leaderboard.json", "report.html", "rejected.tsv", "manifest.json")
#: In a track that was made from a pack, the pack's manifest.
PACK = ".trecexam/pack.json"
#: Files in the drop folder that a copy in progress or an editor leaves behind; they are never read.
IGNORED_SUFFIXES = (".tmp", ".part", ".partial", ".crdownload", ".swp", ".filepart", "~")


@dataclass(frozen=True)
class TrackFolder:
    """The paths of one track. Build it with `TrackFolder.open`.

    Attributes:
        config: settings; in the view of one of several graders, those for this grader.
        trust_code: code that the settings name may run.
        grader: name of the grader; None for the only one of a track, and for the track as a whole.
        people: name of the grader whose file of people's ratings counts.
        place: folder of the grader's files in `out` and `state`; "" for the first, whose files are there.
        track_config: trecexam.toml unchanged, where `config` is for one grader.
    """

    root: Path
    config: TrackConfig
    trust_code: bool = False
    grader: str | None = None
    people: str = "rubric"
    place: str = ""
    track_config: TrackConfig | None = None

    @classmethod
    def open(cls, root: Path | str, *, trust_code: bool = False) -> TrackFolder:
        """Open the track in folder `root`.

        Args:
            trust_code: code that the settings name may run; it may also run where `TRUST_CODE` is set.

        Raises:
            TrackError: there is no such folder.
            ConfigError: its trecexam.toml is missing or wrong.
        """
        if not isinstance(root, str | os.PathLike):
            raise TrackError(f"a track is opened by its folder's path, not by {root!r}")
        root = Path(root)
        if not root.is_dir():
            raise TrackError("no such track folder; make one with `trecexam init`", path=root)
        trusted = os.environ.get(TRUST_CODE, "").lower() in {"1", "true", "yes", "on"}
        return cls(root, load_config(root / CONFIG_NAME), trust_code or trusted)

    @property
    def config_path(self) -> Path:
        return self.root / CONFIG_NAME

    @property
    def whole(self) -> TrackConfig:
        """trecexam.toml unchanged, with all graders."""
        return self.track_config or self.config

    @property
    def section(self) -> str:
        """The section of trecexam.toml for the grader."""
        return "grader" if self.grader is None else f"graders.{self.grader}"

    @property
    def out(self) -> Path:
        return self.root / "out" / self.place

    @property
    def shared_out(self) -> Path:
        """The folder of files about all graders."""
        return self.root / "out"

    @property
    def is_one_of_several(self) -> bool:
        """True for the view of one of several graders."""
        return self.grader is not None and len(self.whole.graders) > 1

    def output(self, name: str) -> Path:
        """Return the path of an output of this grader, by its name in out/.

        Of several graders, out/ itself has the files in `OF_ALL` of all; each grader's are in its own folder.
        """
        if self.is_one_of_several and name in OF_ALL:
            return self.shared_out / str(self.grader) / name
        return self.out / name

    def link(self, name: str) -> str:
        """Return the address of an output, or a folder of outputs, in this grader's report."""
        page = self.output("report.html").parent
        # One file has the rejected inputs of all graders.
        path = self.shared_out / name if name == "rejected.tsv" else self.output(name)
        return PurePath(os.path.relpath(path, page)).as_posix()

    @property
    def state(self) -> Path:
        return self.shared_state / self.place

    @property
    def shared_state(self) -> Path:
        """The folder of the store, locks, columns of runs, and texts that models wrote."""
        return self.root / ".trecexam"

    @property
    def store_path(self) -> Path:
        return self.shared_state / "grades.sqlite"

    @property
    def last_update_path(self) -> Path:
        return self.shared_state / "last-update.json"

    @property
    def answers_path(self) -> Path:
        """Texts that models wrote."""
        return self.shared_state / "generated.jsonl"

    @property
    def writing_lock_path(self) -> Path:
        """Held while a model writes other texts than grades; a daemon may run meanwhile."""
        return self.shared_state / "generate.lock"

    @property
    def unread_path(self) -> Path:
        """Settings with which a grader gave no reply that can be read."""
        return self.state / "unread.json"

    @property
    def manifest_path(self) -> Path:
        return self.output("manifest.json")

    @property
    def lock_path(self) -> Path:
        return self.shared_state / "lock"

    @property
    def runs(self) -> Path:
        return self.root / self.config.track.runs

    def queries(self) -> Path | None:
        return self._input_file("queries", self.config.track.queries)

    def passages(self) -> Path | None:
        return self._input_file("passages", self.config.track.passages)

    def qrels(self) -> Path | None:
        return self._input_file("qrels", self.config.track.qrels)

    def official_leaderboard(self) -> Path | None:
        return self._input_file("official_leaderboard", self.config.track.official_leaderboard)

    def recorded(self) -> Path | None:
        return self._input_file("recorded", self.config.grader.recorded, section="grader")

    def overrides(self) -> Path:
        """Return the path of people's ratings in this grader's place, there or not."""
        return self.root / ("overrides.tsv" if self.people == "rubric" else f"overrides.{self.people}.tsv")

    def judgments(self) -> Path:
        """Return the path of people's judgments of whole passages on the track's own scale, there or not."""
        return self.root / "judgments.tsv"

    def prompt(self) -> Path | None:
        """Return the file of the user's own prompt, if the grader has one."""
        name = self.config.grader.prompt
        if self.config.grader.name == "recorded" or name is None:
            return None
        return self.root / name if Path(name).suffix.lower() in PROMPT_SUFFIXES else None

    def metric(self) -> Path | None:
        """Return the file of the user's own metric, if it is in the track's folder."""
        return metric_file(self.config.grader.metric, self.root)

    def bank(self, *, optional: bool = False) -> tuple[Path, ...]:
        """Return the bank's files, sorted.

        Args:
            optional: True gives () where there is none.

        Raises:
            TrackError: there is none, or a named one is missing.
        """
        patterns = self.config.track.bank
        if patterns is None:
            paths = {path for pattern in BANK_PATTERNS for path in self.root.glob(pattern)}
            if paths or optional:
                return tuple(sorted(paths))
            if self.write_bank is not None:
                raise self.no_bank_yet()
            command = bank_commands().get(self.config.grader.name, "bank generate")
            has_labels = self.qrels() is not None or self.config.track.dataset is not None
            raise TrackError(
                "no test bank: put bank.<name>.jsonl here, one line a query with its questions, or have a "
                f"language model write one: trecexam {command} {quoted(self.root)}"
                + "; `leaderboard` and `compare` need none with --official"
                * has_labels,
                path=self.root,
            )
        files: list[Path] = []
        for pattern in patterns:
            glob = any(c in pattern for c in "*?[")
            matches = sorted(self.root.glob(pattern)) if glob else [self.root / pattern]
            if matches and matches[0].exists():
                files += matches
            elif self.write_bank is None:
                raise self._not_there("bank", "track", pattern)
        if not files and not optional:
            raise self.no_bank_yet()
        return tuple(dict.fromkeys(files))

    @property
    def write_bank(self) -> str | None:
        """The prompt with which `watch` writes a missing bank; None where it writes none."""
        return None if self.grader is None else self.whole.graders[self.grader].write_bank

    def bank_to_write(self) -> Path | None:
        """Return the file that the setting `bank` names; None where it names none, or several."""
        named = self.config.track.bank or []
        return self.root / named[0] if len(named) == 1 and not any(c in named[0] for c in "*?[") else None

    def no_bank_yet(self) -> LackingError:
        """Return the error of a bank that is still to be written, with what to do."""
        target, watch = self.bank_to_write(), f"trecexam watch {quoted(self.root)}"
        name = "bank.<name>.jsonl" if target is None else self.shown(target)
        if not self.config.has_writer:
            reason = (
                f"no test bank, and `{self.config.grader.name}` cannot write one: put {name} here, or name a "
                f"language model in [grader] (`name`, `model`, `base_url`), and `{watch}` has it write one"
            )
        elif self.answers_path.exists():
            reason = (
                f"no test bank yet: what the language model wrote gave no {name}; `{watch} --retry-errors` "
                "goes on, and asks again where no answer could be read, or put it here"
            )
        else:
            reason = f"no test bank yet: `{watch}` has the language model write {name}, or put it here"
        return LackingError(reason, path=self.root)

    def takes_as_bank(self, path: Path) -> bool:
        """Return True for the path of a file of the bank, there or not."""
        patterns = self.config.track.bank
        absolute = PurePath(os.path.abspath(path))  # noqa: PTH100 - a link is named by its own path
        root = escape(os.path.abspath(self.root))  # noqa: PTH100
        return any(absolute.match(os.path.join(root, pattern)) for pattern in patterns or BANK_PATTERNS)  # noqa: PTH118

    def run_files(self) -> tuple[Path, ...]:
        """Return all files in the drop folder and its sub-folders, sorted, whatever they are."""
        if not self.runs.exists():
            if self.config.track.runs != TrackSection.model_fields["runs"].default:
                raise TrackError("no such folder; see `runs` in [track]", path=self.runs)
            return ()
        if not self.runs.is_dir():
            raise TrackError("the drop folder for runs is a file; move it away", path=self.runs)
        return files_in(self.runs)

    def shown(self, path: Path) -> str:
        """Return a path as it is displayed: relative to the track where it is inside."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)

    def section_of(self, key: str, shared: str) -> str:
        """Return the section that sets `key`: the grader's own, else `shared`."""
        section = None if self.grader is None else self.whole.graders[self.grader]
        return shared if section is None or key not in section.model_fields_set else f"graders.{self.grader}"

    def _not_there(self, key: str, shared: str, named: str) -> TrackError:
        """Return the error of a file that a setting names and that does not exist."""
        section = self.section_of(key, shared)
        reason = f"`{key}` in [{section}] names {named}, which does not exist"
        return TrackError(reason, path=self.config_path)

    def _input_file(self, key: str, named: str | None, section: str = "track") -> Path | None:
        """Return the file that the settings name, else the first default that is there."""
        if named is not None:
            path = self.root / named
            if not path.exists():
                raise self._not_there(key, section, named)
            return path
        candidates = [self.root / name for name in _NAMES.get(key, ())]
        # A link to nothing is no absent file: who put it there has to be told.
        links = (path for path in candidates if path.is_symlink())
        return next((path for path in candidates if path.exists()), next(links, None))


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the files in a folder and its sub-folders, sorted, without hidden and unfinished ones."""
    return tuple(
        sorted(
            path
            for path in folder.rglob("*")
            if not any(part.startswith(".") for part in path.relative_to(folder).parts)
            and not path.name.endswith(IGNORED_SUFFIXES)
            and not path.is_dir()
        )
    )


def settings_caution(folder: TrackFolder) -> str:
    """Return a caution about an empty trecexam.toml; "" for others."""
    try:
        is_empty = not folder.config_path.read_bytes().strip()
    except OSError:
        return ""
    if not is_empty:
        return ""
    return (
        f"caution: {folder.config_path} is empty, so that all settings are the defaults; a full disk "
        "leaves such files: put the settings back, or a comment into it where the defaults are meant"
    )


def refuse_code(metric: str | None, root: Path, *, trusted: bool) -> None:
    """Refuse a metric that is code, `module:function`, unless code is trusted.

    The module may be anywhere: on outputs that came with a track, `shutil:rmtree` does harm, too.

    Args:
        root: the folder of the track.

    Raises:
        TrackError: with the file of the code.
    """
    if trusted or metric is None or ":" not in metric:
        return
    raise TrackError(
        f"the metric '{metric}' is code, and did not run: read it, then add --trust-code (in Python: "
        "trust_code=True) if you trust who wrote it",
        path=metric_file(metric, root) or metric_file(metric, Path()) or root / CONFIG_NAME,
    )


def metric_file(name: str | None, folder: Path) -> Path | None:
    """Return the file in a folder that has the metric `module:function`, if there is one."""
    module, colon, _ = (name or "").partition(":")
    if not colon or not module.strip("."):
        return None
    *packages, last = module.split(".")
    path = folder.joinpath(*packages, f"{last}.py")
    return path if path.is_file() else None
