from __future__ import annotations

from pathlib import Path

import pytest

from trecexam.config import TrackConfig, load_config, render_config
from trecexam.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trecexam.toml"
    path.write_text(text)
    return path


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, ""))
    assert config == TrackConfig()
    assert config.scores.min_rating == 4
    assert config.measures()[0] == "P(rel=4)@20"


def test_the_rendered_template_is_valid_and_means_the_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, render_config({})))
    assert config == TrackConfig()
    # Sections that count by being there are not there.
    assert (config.grades_support, config.has_judging) == (False, False)
    assert load_config(write(tmp_path, render_config({"support": {}}))).grades_support


def test_the_rendered_template_keeps_what_is_set(tmp_path: Path) -> None:
    text = render_config({"track": {"bank": ["bank.a.jsonl", 'b"q.jsonl']}, "grader": {"name": "recorded"}})
    config = load_config(write(tmp_path, text))
    assert config.track.bank == ["bank.a.jsonl", 'b"q.jsonl']
    assert config.grader.name == "recorded"


def test_every_setting_has_a_description() -> None:
    for section in TrackConfig.model_fields.values():
        assert section.annotation is not None
        assert all(field.description for field in section.annotation.model_fields.values())


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("[track]\ndetph = 3\n", 2, "unknown setting `track.detph`; did you mean `depth`?"),
        ("[scores]\n\nmin_ratings = 3\n", 3, "did you mean `min_rating`?"),
        ("[trak]\n", 1, "unknown section `trak`; did you mean `track`?"),
        ("[track]\ndepth = 0\n", 2, "`track.depth` = 0:"),
        ("[scores]\nlabel = 'best'\n", 2, "`scores.label` ="),
        ("[track]\ndepth = \n", 2, "not valid TOML"),
        (
            "[grader]\n[watch]\n[grader]\n",
            3,
            "a second [grader]: put its settings into the one that is there",
        ),
        ("[grader]\ncut_points = [0.5, 0.4, 0.6, 0.7, 0.8]\n", 2, "rising order"),
        ("[watch]\npoll = 0\n", 2, "`watch.poll` = 0"),
        ("[track]\ndepth = true\n", 2, "`track.depth` = true: Input should be a valid integer"),
        ("[scores]\nmin_rating = '4'\n", 2, "`scores.min_rating` ="),
        ("[scores]\nmeasures = []\n", 2, "`scores.measures` = []"),
        ("[grader]\ntemperature = inf\n", 2, "`grader.temperature` ="),
        ("[grader]\nsoft_width = inf\n", 2, "`grader.soft_width` ="),
        ("[grader]\nsoft_cuts = [0.1, 0.2, 0.3, 0.4, nan]\n", 2, "`grader.soft_cuts` ="),
        ("[cells]\noutputs_every = inf\n", 2, "`cells.outputs_every` ="),
        (
            "[grader]\nextra = { day = 2026-01-01 }\n",
            2,
            "`grader.extra`: Value error, holds what JSON cannot",
        ),
        ("[grader]\nextra = { model = 'x' }\n", 2, "`model` is set by trecexam"),
        ("[grader]\nextra = { max_completion_tokens = 9 }\n", 2, "setting of its own: `max_new_tokens`"),
        ("[generator]\nextra = { seed = 9 }\n", 2, "setting of its own: `seed`"),
        (
            "[grader]\nkey_env = 'sk-abc'\n",
            2,
            "`grader.key_env`: Value error, give the name of an environment",
        ),
        ("[ray]\naddress = 'ray://head:10001'\n", 2, "so that ray:// is not taken"),
        ("[ray]\naddress = 'local'\n", 2, "`ray.address` ="),
        ("[ray]\ngpus_per_worker = 1.5\n", 2, "give a part of one GPU, or a whole number"),
        ("[ray]\nadress = 'auto'\n", 2, "unknown setting `ray.adress`; did you mean `address`?"),
        ("[grader]\nbase_url = 'host:80'\n", 2, "`grader.base_url`: Value error, give an address such as"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert caught.value.line == line
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert "\n" not in str(caught.value)


def test_a_folder_without_settings_is_no_track(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="trecexam init"):
        load_config(tmp_path / "trecexam.toml")


def test_default_measures_follow_depth_and_label() -> None:
    config = TrackConfig.model_validate(
        {"track": {"depth": 10}, "scores": {"label": "count", "min_rating": 5}}
    )
    assert config.measures()[:3] == ["P(rel=1)@10", "Cover(rel=5)@10", "nDCG@10"]
    assert "Cover(rel=5)@10" in config.measures()


@pytest.mark.parametrize(
    "address", ["http://host:99999/v1", "http://host:abc/v1", "http://[::1", "http://:80/v1"]
)
def test_an_address_that_can_be_none_is_refused_before_anything_is_asked(
    tmp_path: Path, address: str
) -> None:
    with pytest.raises(ConfigError, match=r"`grader\.base_url`: .*give an address such as"):
        load_config(write(tmp_path, f'[grader]\nbase_url = "{address}"\n'))
