from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.config import load_config, render_config
from trecexam.config.sections import NamedGrader, TrackSection, descriptions
from trecexam.config.track_config import config_class, effective
from trecexam.errors import ConfigError, TrackError
from trecexam.folder import TrackFolder


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trecexam.toml"
    path.write_text(text)
    return path


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, ""))
    assert config == config_class()()
    assert config.scores.min_rating == 4
    assert config.measures()[0] == "P(rel=4)@20"
    assert config.elsewhere is None
    assert load_config(write(tmp_path, '[ray]\naddress = "auto"\n')).elsewhere is not None


def test_the_rendered_template_is_valid_and_means_the_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, render_config({})))
    assert config == config_class()()
    # Optional sections are not there.
    assert "judging" not in config.model_fields_set
    assert load_config(write(tmp_path, render_config({"judging": {}}))).model_fields_set >= {"judging"}
    # Changed settings are kept.
    text = render_config({"track": {"bank": ["bank.a.jsonl", 'b"q.jsonl']}, "grader": {"name": "recorded"}})
    config = load_config(write(tmp_path, text))
    assert config.track.bank == ["bank.a.jsonl", 'b"q.jsonl']
    assert config.grader.name == "recorded"


def test_every_setting_has_a_description() -> None:
    shared = TrackSection.model_fields.keys()
    for name, section in config_class().model_fields.items():
        annotation = NamedGrader if name == "graders" else section.annotation
        assert annotation is not None
        texts = descriptions(annotation)
        assert all(texts[key] for key in annotation.model_fields if name != "graders" or key not in shared)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("[track]\ndetph = 3\n", 2, "unknown setting `track.detph`; did you mean `depth`?"),
        ("[scores]\n\nmin_ratings = 3\n", 3, "did you mean `min_rating`?"),
        ("[trak]\n", 1, "unknown section `trak`; did you mean `track`?"),
        ("[support]\n", 1, "unknown section `support`; that of a grader is [graders.support];"),
        ("[support]\nname = 'recorded'\n", 1, "`support`; that of a grader is [graders.support];"),
        ("[graders.rubric]\nbank = 'b'\n", 2, '`graders.rubric.bank` = "b": must be a list'),
        ("[track]\ndepth = 0\n", 2, "`track.depth` = 0: must be 1 or more"),
        ("[scores]\nlabel = 'best'\n", 2, "`scores.label` ="),
        ("[track]\ndepth = \n", 2, "not valid TOML"),
        ("[grader]\n[watch]\n[grader]\n", 3, "not valid TOML: Cannot declare ('grader',) twice"),
        ("[grader]\ncut_points = [0.5, 0.4, 0.6, 0.7, 0.8]\n", 2, "rising order"),
        ("[watch]\npoll = 0\n", 2, "`watch.poll` = 0"),
        ("[track]\ndepth = true\n", 2, "`track.depth` = true: must be a whole number"),
        ("[scores]\nmin_rating = '4'\n", 2, '`scores.min_rating` = "4": must be a whole number'),
        ("[track]\npool_judged = 'ja'\n", 2, '`track.pool_judged` = "ja": must be true or false'),
        (
            "[judging]\nrule = 'latst'\n",
            2,
            "= \"latst\": must be 'latest', 'majority' or 'adjudicated'; did you mean 'latest'?",
        ),
        ("[scores]\nmeasures = []\n", 2, "`scores.measures` = []"),
        ("[grader]\ntemperature = inf\n", 2, "`grader.temperature` ="),
        ("[grader]\ncut_points = [0.1, 0.2, 0.3, 0.4, nan]\n", 2, "`grader.cut_points` ="),
        ("[cells]\noutputs_every = inf\n", 2, "`cells.outputs_every` ="),
        (
            "[grader]\nextra = { day = 2026-01-01 }\n",
            2,
            "`grader.extra`: holds a value that JSON does not have",
        ),
        ("[grader]\nextra = { model = 'x' }\n", 2, "`model` is set by trecexam"),
        (
            "[grader]\nextra = { max_completion_tokens = 9 }\n",
            2,
            "tokens` is set by trecexam: see `max_new_tokens`",
        ),
        ("[generator]\nextra = { seed = 9 }\n", 2, "`seed` is set by trecexam"),
        ("[grader]\nkey_env = 'sk-abc'\n", 2, "`grader.key_env`: give the name of an environment"),
        ("[ray]\naddress = 'ray://head:10001'\n", 2, "so that ray:// is rejected"),
        ("[ray]\naddress = 'local'\n", 2, "`ray.address` ="),
        ("[ray]\ngpus_per_worker = 1.5\n", 2, "give a part of one GPU, or a whole number"),
        ("[ray]\nadress = 'auto'\n", 2, "unknown setting `ray.adress`; did you mean `address`?"),
        *(
            (f"[grader]\nbase_url = '{address}'\n", 2, "give an address such as")
            for address in (
                "host:80",
                "http://host:99999/v1",
                "http://host:abc/v1",
                "http://[::1",
                "http://:80/v1",
            )
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.line == line
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(caught.value)


def test_a_folder_without_settings_is_not_a_track(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trecexam init"):
        load_config(tmp_path / "trecexam.toml")


SEVERAL = """
[track]
depth = 7
[grader]
name = "openai"
model = "m"
base_url = "http://localhost:8000/v1"
price_in = 1.0
revision = "r"
budget_tokens = 5
[scores]
min_relevant = 2
[graders.umbrela]
prompt = "UMBRELA"
depth = 3
[graders.mini]
kind = "rubric"
model = "n"
measures = ["nDCG@5"]
[graders.own]
kind = "rubric"
name = "embedding"
"""


def test_graders_use_their_own_settings_then_shared_ones_then_those_of_their_kind(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, SEVERAL)
    config = load_config(path)
    assert list(config.graders) == ["umbrela", "mini", "own"]
    of_kind = {"track": {"unit": "response", "depth": 9}, "grader": {"max_new_tokens": 64}}
    umbrela, mini, own = (effective(config, name, of_kind, path) for name in config.graders)
    assert umbrela.grader.model_dump(exclude_unset=True) == {
        "name": "openai",
        "model": "m",
        "base_url": "http://localhost:8000/v1",
        "price_in": 1.0,
        "revision": "r",
        "budget_tokens": 5,
        "prompt": "UMBRELA",
        "max_new_tokens": 64,
    }
    assert (umbrela.track.depth, umbrela.track.unit) == (3, "response")
    # With another model, it does not inherit prices or revision.
    assert (mini.grader.model, mini.grader.base_url) == ("n", "http://localhost:8000/v1")
    assert (mini.grader.price_in, mini.grader.revision, mini.grader.budget_tokens) == (None, None, 5)
    assert (mini.track.depth, mini.scores.measures, mini.scores.min_relevant) == (7, ["nDCG@5"], 2)
    # With another name, it inherits nothing of [grader].
    assert own.grader.model_dump(exclude_unset=True) == {"name": "embedding", "max_new_tokens": 64}
    for each in (umbrela, mini, own):
        assert each.graders == {}
        assert "graders" not in each.values()


def test_inconsistent_settings_of_one_grader_are_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, '[graders.x]\nunit = "response"\npool = "citations"\n')
    with pytest.raises(ConfigError, match=r"`unit` in \[graders\.x\]: .*no text of a response is graded"):
        effective(load_config(path), "x", {}, path)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('[graders.x]\nprmpt = "a"\n', 2, "unknown setting `graders.x.prmpt`; did you mean `prompt`?"),
        ("[graders.x]\ntruncate = 3\n", 2, "unknown setting `graders.x.truncate`"),
        ("[graders]\nx = 3\n", 2, "`graders.x` = 3"),
        ("graders.x.depth = 0\n", 1, "`graders.x.depth` = 0"),
        ("[graders.X]\n", 1, "use small letters, digits and -, at most 32, beginning with a letter"),
        ("[graders.plots]\n", 1, "the name is in use"),
        ("[graders.x]\nkey_env = 'sk-abc'\n", 2, "`graders.x.key_env`: give the name of an"),
        *(
            (f"[{section}]\n{key} = {value}\n[graders.x]\n", 2, f"`{section}.{key}` belongs to one grader")
            for section, key, value in (
                ("grader", "prompt", "'UMBRELA'"),
                ("grader", "recorded", "'x'"),
                ("grader", "metric", "'f1'"),
                ("grader", "cut_points", "[0.1, 0.2, 0.3, 0.4, 0.5]"),
                ("scores", "measures", "['nDCG@10']"),
                ("scores", "min_rating", "3"),
                ("scores", "label", "'count'"),
                ("track", "unit", "'response'"),
                ("track", "pool", "'both'"),
            )
        ),
    ],
)
def test_a_wrong_setting_of_one_of_several_graders_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.line == line
    assert reason in str(caught.value)


def test_rendered_settings_of_several_graders_mean_the_same(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, SEVERAL))
    for full in (True, False):
        text = render_config(config.model_dump(exclude_unset=True), full=full)
        assert load_config(write(tmp_path, text)).graders == config.graders


def test_a_setting_that_names_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "[track]\nqueries = 'quries.tsv'\nbank = ['b.jsonl']\nqrels = 'zzz'\n")
    folder = TrackFolder.open(tmp_path)
    for call, reason in (
        (folder.queries, "`queries` in [track] names quries.tsv, which does not exist"),
        (folder.bank, "`bank` in [track] names b.jsonl, which does not exist"),
        (folder.qrels, "`qrels` in [track] names zzz, which does not exist"),
    ):
        with pytest.raises(TrackError) as caught:
            call()
        assert str(caught.value) == f"{path}: {reason}"


def test_a_byte_order_mark_is_taken_and_another_encoding_named(tmp_path: Path) -> None:
    path = tmp_path / "trecexam.toml"
    path.write_bytes(b"\xef\xbb\xbf[track]\ndepth = 7\n")
    assert load_config(path).track.depth == 7
    path.write_text("[track]\ndepth = 7\n", encoding="utf-16")
    with pytest.raises(ConfigError, match="not UTF-8: save the file as UTF-8"):
        load_config(path)
