"""asv.conf.json: where it is found, how it is read, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.config import Config as AsvConfig

from regress.compare.rule import Rule
from regress.config import Config, cache_dir, cache_in_tree, clone_dir, effective, load, own_paths, with_overrides
from regress.config.configuration import ASV_KEYS, OTHER_ASV_KEYS
from regress.config.settings import RULES
from regress.errors import ConfigError
from regress.model import METRICS, Case, Settings


@pytest.fixture(autouse=True)
def _no_cache_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REGRESS_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty folder that looks like the top of a git repository."""
    top = tmp_path / "project"
    (top / ".git").mkdir(parents=True)
    return top


def write(folder: Path, regress: Any = None, *, name: str = "asv.conf.json", **keys: Any) -> Path:
    data = {"version": 1, "project": "p", "repo": ".", **keys}
    if regress is not None:
        data["regress"] = regress
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def read(folder: Path, regress: Any = None, **keys: Any) -> Config:
    return load(write(folder, regress, **keys), folder)


def refusal(folder: Path, regress: Any = None, **keys: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, regress, **keys)
    return f"{caught.value.what} | {caught.value.why} | {caught.value.fix}"


# -- finding -------------------------------------------------------------------------------------------------------------


def test_the_nearest_file_up_to_the_top_of_the_repository_is_taken(project: Path) -> None:
    inner = project / "src" / "deep"
    inner.mkdir(parents=True)
    top = write(project)
    assert load(None, inner).path == top
    nearer = write(project / "src")
    assert load(None, inner).path == nearer


def test_nothing_above_the_repository_is_looked_at(project: Path) -> None:
    write(project.parent)
    with pytest.raises(ConfigError) as caught:
        load(None, project)
    assert "there is no asv.conf.json" in caught.value.what
    assert "regress init" in caught.value.fix
    assert "--config" in caught.value.fix


@pytest.mark.parametrize("folder", ["benchmarks", "asv_bench"])
def test_the_usual_folders_are_looked_at_last(project: Path, folder: str) -> None:
    path = write(project / folder, repo="..")
    (project / "src").mkdir()
    assert load(None, project / "src").path == path
    top = write(project)
    assert load(None, project / "src").path == top


def test_of_two_files_the_user_must_name_one(project: Path) -> None:
    first = write(project)
    second = write(project, name="asv.conf.jsonc")
    with pytest.raises(ConfigError, match="two configurations") as caught:
        load(None, project)
    assert str(second) in caught.value.why
    assert caught.value.fix == f"name one: --config {first}"
    assert load(second, project).path == second


def test_two_usual_folders_with_a_file_are_a_question_too(project: Path) -> None:
    write(project / "benchmarks", repo="..")
    write(project / "asv_bench", repo="..")
    with pytest.raises(ConfigError, match="two configurations"):
        load(None, project)


def test_a_named_file_that_is_missing_is_an_error(project: Path) -> None:
    write(project)
    with pytest.raises(ConfigError, match=r"no file .*other\.json"):
        load(project / "other.json", project)


def test_a_linked_file_counts_where_the_link_is(project: Path, tmp_path: Path) -> None:
    target = write(tmp_path / "shared")
    (project / "asv.conf.json").symlink_to(target)
    assert load(None, project).root == project


# -- parsing -------------------------------------------------------------------------------------------------------------


def test_json5_is_read(project: Path) -> None:
    path = project / "asv.conf.json"
    path.write_text(
        "\ufeff{\n// comment\nversion: 1, 'repo': '.', /* … */ regress: {time_threshold: '3%',},}", encoding="utf-8"
    )
    assert load(path, project).settings.time_threshold == 0.03


def test_a_syntax_error_is_given_with_line_and_column(project: Path) -> None:
    path = project / "asv.conf.json"
    path.write_text('{\n  "version": 1,\n  "repo": oops\n}')
    with pytest.raises(ConfigError) as caught:
        load(path, project)
    assert caught.value.what == f"{path}:3:11 is not JSON5"
    assert "Unexpected" in caught.value.why


@pytest.mark.parametrize("text", ["", "[]", '"x"', '{"version": 1, "repo": "."'])
def test_what_is_no_object_is_refused(project: Path, text: str) -> None:
    path = project / "asv.conf.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        load(path, project)


def test_bytes_that_are_not_utf8_are_refused(project: Path) -> None:
    path = project / "asv.conf.json"
    path.write_bytes(b'{"project": "\xff"}')
    with pytest.raises(ConfigError, match="cannot read"):
        load(path, project)


def test_a_key_that_an_object_has_twice_is_warned_of_with_its_lines(project: Path) -> None:
    path = project / "asv.conf.json"
    path.write_text(
        '{\n "version": 1,\n "repo": "..", // "repo": here is none\n "matrix": {"env": {}, "req": {"env": []}},\n'
        " 'repo': '.',\n \"regress\": {\"seed\": 1, seed: 2}\n}"
    )
    config = load(path, project)
    assert (config.repo, config.settings.seed) == (project, 2)
    assert config.warnings == (
        'asv.conf.json has "repo" 2 times, in lines 3 and 5, and only the last one counts; fix: remove the others',
        'asv.conf.json has "seed" 2 times, in line 6, and only the last one counts; fix: remove the others',
    )


# -- asv's keys ----------------------------------------------------------------------------------------------------------


def test_a_file_without_our_key_gives_the_defaults_of_asv_and_ours(project: Path) -> None:
    config = read(project)
    assert config.settings == Settings()
    assert (config.repo, config.root) == (project, project)
    assert config.benchmark_dir == project / "benchmarks"
    assert (config.results_dir, config.html_dir) == (project / "results", project / "html")
    assert config.default_benchmark_timeout_s == 60.0
    assert (config.branches, config.show_commit_url, config.warnings) == ((), "", ())


def test_asvs_keys_are_used_and_unknown_ones_kept(project: Path) -> None:
    config = read(
        project / "benchmarks",
        repo="..",
        benchmark_dir="suite",
        results_dir="../history",
        branches=["main", "v1.x"],
        default_benchmark_timeout=5,
        regressions_thresholds={".*": 0.2},
        show_commit_url="https://example.org/commit/",
        matrix={"req": {"numpy": []}},
        whatever=1,
    )
    assert config.repo == project
    assert config.benchmark_dir == project / "benchmarks" / "suite"
    assert config.results_dir == project / "history"
    assert config.branches == ("main", "v1.x")
    assert config.default_benchmark_timeout_s == 5.0
    assert config.regressions_thresholds == {".*": 0.2}
    assert config.settings.thresholds == {".*": {"time": 0.2}}
    assert config.show_commit_url == "https://example.org/commit/"
    assert config.asv["matrix"] == {"req": {"numpy": []}}
    assert config.asv["whatever"] == 1


@pytest.mark.parametrize(
    "key, value, expected",
    [
        ("project", 3, "a string"),
        ("branches", [], "a list of names"),
        ("branches", "main", "a list of names"),
        ("benchmark_dir", ["b"], "a string"),
        ("default_benchmark_timeout", 0, "seconds above 0"),
        ("default_benchmark_timeout", True, "seconds above 0"),
        ("regressions_thresholds", {".*": "5"}, "numbers above 0"),
        ("version", 2, "version 1"),
    ],
)
def test_a_key_of_asv_with_a_wrong_value_is_named(project: Path, key: str, value: Any, expected: str) -> None:
    message = refusal(project, **{key: value})
    assert key in message
    assert expected in message
    assert json.dumps(value) in message


def test_a_file_without_version_is_read_with_a_warning(project: Path) -> None:
    assert "version" in read(project, version=None).warnings[0]


def test_a_misspelt_key_of_asv_is_warned_of_where_the_right_one_is_missing(project: Path) -> None:
    config = read(project, bechmark_dir="suite", regres={}, html_directory="x", Project="P", conda_lock="x")
    assert config.warnings == (
        'asv.conf.json has "bechmark_dir", which neither asv nor regress reads; fix: write "benchmark_dir"',
        'asv.conf.json has "regres", which neither asv nor regress reads; fix: write "regress"',
    )
    assert read(project, bechmark_dir="suite", benchmark_dir="suite").warnings == ()


def test_every_key_that_asv_reads_is_known() -> None:
    assert set(vars(AsvConfig())) <= {*ASV_KEYS, *OTHER_ASV_KEYS}


@pytest.mark.parametrize("places", [{"results_dir": "."}, {"html_dir": ".."}, {"results_dir": "benchmarks"}])
def test_results_may_not_lie_around_the_code(project: Path, places: dict[str, str]) -> None:
    assert next(iter(places)) in refusal(project, **places)


def test_the_report_may_not_lie_where_asv_publish_deletes(project: Path) -> None:
    assert "asv publish" in refusal(project, {"report_dir": "html/ours"})


# -- the repository ------------------------------------------------------------------------------------------------------


def test_a_missing_repository_is_named(project: Path) -> None:
    assert '"repo": "."' in refusal(project, repo="")
    assert refusal(project, repo="", rpo=".").endswith('write "repo" for "rpo"')
    assert read(project, repo="elsewhere").repo == project / "elsewhere"  # who opens it says that it is not there


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/owner/lib.git",
        "git@example.org:owner/lib.git",
        "example.org:owner/lib",
        "ssh://git@example.org/owner/lib/",
        "file:///srv/lib",
    ],
)
def test_the_address_of_another_project_has_a_clone_in_the_cache(project: Path, address: str) -> None:
    config = read(project, repo=address)
    assert (config.repo, config.address, config.warnings) == (None, address, ())
    assert clone_dir(config).parent == cache_dir(config)
    assert cache_dir(config).name.startswith("lib-")


def test_the_folder_tells_nothing_of_a_clone_that_has_remotes(project: Path) -> None:
    (project / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.org/owner/its-suite\n')
    assert read(project, repo="https://example.org/owner/project.git").repo is None


def test_a_clone_without_remotes_is_known_by_its_folder(project: Path) -> None:
    assert read(project, repo="https://example.org/owner/project.git").repo == project


@pytest.mark.parametrize("remote", ["https://example.org/owner/lib", "ssh://git@example.org/fork/lib.git"])
def test_the_address_of_this_clone_means_this_clone(project: Path, remote: str) -> None:
    (project / ".git" / "config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n')
    config = read(project / "benchmarks", repo="https://example.org/owner/lib.git")
    assert config.repo == project
    assert "https://example.org/owner/lib.git" in config.warnings[0]


# -- our settings --------------------------------------------------------------------------------------------------------


def test_settings_are_taken_by_their_names(project: Path) -> None:
    given = {"time_threshold": "2.5 %", "memory_threshold": 0.5, "alpha": 0.01, "check_rounds": 7, "build": "make"}
    settings = read(project, {**given, "device": "fake"}).settings
    assert (settings.time_threshold, settings.memory_threshold, settings.alpha) == (0.025, 0.5, 0.01)
    assert (settings.check_rounds, settings.build, settings.device) == (7, ("make",), "fake")
    assert read(project, {"build": ["a", "b"]}).settings.build == ("a", "b")


@pytest.mark.parametrize("name, near", [("time_treshold", "time_threshold"), ("Memory-Threshold", "memory_threshold")])
def test_an_unknown_setting_is_an_error_with_the_nearest_name(project: Path, name: str, near: str) -> None:
    message = refusal(project, {name: 0.1})
    assert name in message
    assert message.endswith(f'write "{near}"')
    assert "sweep_rounds" in message


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("time_threshold", 0, "above 0"),
        ("time_threshold", 5, '"5%"'),
        ("time_threshold", "0%", "above 0"),
        ("time_threshold", "five", '"5%"'),
        ("memory_threshold", float("nan"), "above 0"),
        ("host_threshold", float("inf"), "above 0"),
        ("alpha", 1, "between 0 and 1"),
        ("alpha", "5%", "between 0 and 1"),
        ("confidence", 0.0, "between 0 and 1"),
        ("good_rounds", 1.5, "up to 1"),
        ("time_floor_s", -1e-6, "0 or more"),
        ("memory_floor_bytes", 1.5, "bytes"),
        ("check_rounds", 1, "2 or more"),
        ("check_rounds", True, "2 or more"),
        ("sweep_rounds", "3", "2 or more"),
        ("memory_rounds", -1, "0 or more"),
        ("build_timeout_s", 0, "above 0"),
        ("seed", -(10**400), "0 or more"),
        ("seed", True, "0 or more"),
        ("alpha", 10**400, "between 0 and 1"),
        ("device", "gpu", "one of auto, cuda"),
        ("build", [""], "list of strings"),
        ("build", {"a": 1}, "list of strings"),
        ("machine", 1, "a string"),
        ("report_dir", "", "name of a folder"),
        ("clock_tolerance", -0.01, "from 0 to below 1"),
        ("cuda", [7], "list of strings"),
        ("better", {"^x": "smaller"}, "lower or higher by pattern"),
    ],
)
def test_a_bad_value_is_refused_by_name_value_and_what_was_expected(
    project: Path, name: str, value: Any, expected: str
) -> None:
    message = refusal(project, {name: value})
    assert f'"{name}" is {json.dumps(value)[:20]}' in message
    assert "asv.conf.json" in message
    assert expected in message


@pytest.mark.parametrize("given", ["Matmul", ["Matmul"], ("Matmul",)])
def test_patterns_of_the_device_protocol_are_a_string_or_a_list(project: Path, given: Any) -> None:
    assert read(project, {"cuda": given}).settings.cuda == ("Matmul",)


def test_a_pattern_that_is_no_expression_is_named(project: Path) -> None:
    message = refusal(project, {"cuda": ["ops\\..*", "time_(add"]})
    assert message.startswith('"cuda" has "time_(add" (asv.conf.json) | it is not a regular expression: ')
    with pytest.raises(ConfigError, match="command line"):
        with_overrides(read(project), cuda=("*",))


def test_thresholds_by_pattern_and_metric(project: Path) -> None:
    given = {"ops.*": {"gpu_time": "3%", "value": 0.2}, "io": {"memory": 1}}
    assert read(project, {"thresholds": given}).settings.thresholds == {
        "ops.*": {"gpu_time": 0.03, "value": 0.2},
        "io": {"memory": 1.0},
    }
    message = refusal(project, {"thresholds": {"ops": {"gpu_tme": 0.1}}})
    assert "there is no metric gpu_tme" in message
    assert message.endswith('write "gpu_time"')
    assert "it is not a regular expression" in refusal(project, {"thresholds": {"(": {"time": 0.1}}})


@pytest.mark.parametrize("given", [0.1, {"ops": 0.1}, {"ops": {"time": 0}}, {"ops": {"time": "x"}}, [{"ops": 1}]])
def test_thresholds_that_are_none_are_refused(project: Path, given: Any) -> None:
    assert "by pattern and metric" in refusal(project, {"thresholds": given})


def test_asvs_thresholds_come_first_and_the_largest_of_them_counts(project: Path) -> None:
    """The last that matches counts: asv's stand in order of size, ours behind them."""
    asvs = {"ops": 0.3, "ops.time_a": 0.1, "ops.time_b": 1.5}
    config = read(
        project, {"thresholds": {"ops.time_a": {"memory": 0.2}, "x": {"time": 0.02}}}, regressions_thresholds=asvs
    )
    assert list(config.settings.thresholds.items()) == [
        ("ops", {"time": 0.3}),
        ("ops.time_b", {"time": 1.5}),
        ("ops.time_a", {"time": 0.1, "memory": 0.2}),
        ("x", {"time": 0.02}),
    ]
    assert "it is not a regular expression" in refusal(project, regressions_thresholds={"(": 0.1})
    rows = {row.name: (row.value, row.source) for row in effective(config)}
    assert rows["thresholds"] == (config.settings.thresholds, "asv.conf.json")


@pytest.mark.parametrize("name", ["ops.time_a", "ops.time_b(1, 'x')", "ops.time_b(2)", "io.time_ops", "ops"])
def test_asvs_thresholds_are_those_that_asv_takes(project: Path, name: str) -> None:
    from asv.plugins.regressions import _GraphDataFilter

    asvs = {"ops.*": 0.3, "ops.time_a$": 0.1, r"ops.time_b\(1": 0.4, "time": 0.9, "io.*@main": 0.7}
    config = read(project, regressions_thresholds=asvs)
    filter = _GraphDataFilter(SimpleNamespace(regressions_thresholds=asvs), None, {})
    expected = filter._get_threshold(SimpleNamespace(params={}), None, name)
    assert Rule.of(Case(name), METRICS["wall_time"], config.settings).threshold == expected


def test_every_number_among_the_settings_has_a_range() -> None:
    numbers = [field.name for field in dataclasses.fields(Settings) if field.type in ("float", "int")]
    free = [name for name in numbers if not any(re.fullmatch(pattern, name) for pattern in RULES)]
    assert numbers
    assert free == []


def test_every_default_is_within_its_own_range(project: Path) -> None:
    defaults = json.loads(json.dumps(dataclasses.asdict(Settings()), default=list))
    assert with_overrides(read(project), **defaults).settings.time_threshold == Settings().time_threshold


def test_the_key_itself_must_be_an_object(project: Path) -> None:
    assert "expected an object" in refusal(project, [1])


def test_the_command_line_wins_over_the_file(project: Path) -> None:
    config = read(project, {"time_threshold": 0.2, "seed": 3})
    changed = with_overrides(config, time_threshold="1%", device=None)
    assert (changed.settings.time_threshold, changed.settings.seed) == (0.01, 3)
    assert config.settings.time_threshold == 0.2
    with pytest.raises(ConfigError, match="command line"):
        with_overrides(config, alpha=2)
    with pytest.raises(ConfigError, match="html"):
        with_overrides(config, report_dir=str(project / "html"))


def test_effective_names_the_source_of_everything(project: Path) -> None:
    config = with_overrides(read(project, {"alpha": 0.01}, results_dir="history", seed=9), check_rounds=3)
    rows = {row.name: (row.value, row.source) for row in effective(config)}
    assert rows["alpha"] == (0.01, "asv.conf.json")
    assert rows["check_rounds"] == (3, "command line")
    assert rows["seed"] == (0, "default")  # asv.conf.json has a key of that name, but not under "regress"
    assert rows["results_dir"] == (str(project / "history"), "asv.conf.json")
    assert rows["default_benchmark_timeout"] == (60.0, "default")
    assert rows["report_dir"] == (str(project / "report"), "default")
    assert {field.name for field in dataclasses.fields(Settings)} <= rows.keys()
    json.dumps([value for value, _ in rows.values()])


# -- places --------------------------------------------------------------------------------------------------------------


def test_the_cache_is_chosen_in_order(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def base(regress: Any = None) -> tuple[Path, str]:
        config = read(project, regress)
        source = {row.name: row.source for row in effective(config)}["cache_dir"]
        return cache_dir(config).parent, source

    assert base() == (tmp_path / "home" / ".cache" / "regress", "default")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert base() == (tmp_path / "home" / ".cache" / "regress", "default")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert base() == (tmp_path / "xdg" / "regress", "$XDG_CACHE_HOME")
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "own"))
    assert base() == (tmp_path / "own", "$REGRESS_CACHE_DIR")
    assert base({"cache_dir": "near"}) == (project / "near", "asv.conf.json")


def test_a_relative_cache_lies_where_the_command_was_started(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGRESS_CACHE_DIR", "near")
    config = read(project / "benchmarks", repo="..")
    monkeypatch.chdir(tmp_path)  # as while an environment of asv is made
    assert cache_dir(config).parent == project / "benchmarks" / "near"
    assert cache_in_tree(config) == ("benchmarks/near", project / "benchmarks" / "near", "$REGRESS_CACHE_DIR")
    monkeypatch.setenv("REGRESS_CACHE_DIR", "../../near")
    assert cache_in_tree(config)[0] == ""


def test_each_repository_has_a_cache_of_its_own(tmp_path: Path) -> None:
    tops = [tmp_path / side / "lib" for side in ("a", "b")]
    for top in tops:
        (top / ".git").mkdir(parents=True)
    first, second = (cache_dir(read(top)) for top in tops)
    assert first != second
    assert first.name.startswith("lib-")
    assert cache_dir(read(tops[0] / "benchmarks", repo="..")) == first


def test_linked_worktrees_share_the_cache(project: Path, tmp_path: Path) -> None:
    private = project / ".git" / "worktrees" / "linked"
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {private}\n")
    assert cache_dir(read(linked)) == cache_dir(read(project))


def test_linked_worktrees_of_a_bare_repository_share_the_cache(tmp_path: Path) -> None:
    trees = [tmp_path / name for name in ("main", "fix")]
    for tree in trees:
        private = tmp_path / "lib.git" / "worktrees" / tree.name
        private.mkdir(parents=True)
        (private / "commondir").write_text("../..\n")
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {private}\n")
    caches = {cache_dir(read(tree)) for tree in trees}
    assert [cache.name.partition("-")[0] for cache in caches] == ["lib.git"]


def test_a_folder_on_the_command_line_is_relative_to_where_the_user_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = with_overrides(read(project), report_dir="pages", cache_dir="store")
    assert tmp_path / "pages" in own_paths(config)
    assert cache_dir(config).parent == tmp_path / "store"


def test_own_paths_are_all_that_we_write(project: Path) -> None:
    config = read(project, {"cache_dir": "cached", "acks": "known.toml"}, results_dir="history")
    names = "history", "html", "report", "known.toml", "asv.conf.json", ".gitignore"
    assert set(own_paths(config)) == {
        *(project / name for name in names),
        cache_dir(config),
        cache_dir(config) / "environments",
    }
    assert project / "env" / "regress" in own_paths(read(project, env_dir="env"))
    assert all(os.path.isabs(path) for path in own_paths(config))


NOT_TEXT = ['"\\u0000"', '"a\\ud800"', '{"\\ud800": 1}', '["\\u0000"]', '{"a": {"b": "\\u0000"}}']
ODD = [*NOT_TEXT, "null", "true", "-1", "0", "1e400", "1" + "0" * 400, "1" + "0" * 5000, f'"{"x" * 500}"', f'"{"x/" * 5000}"',
       "[]", "{}", "[[]]", '{"a": {"time": 1e999}}', '{"(": 1}', '"a\\nb"', '"\\u2028"', '{"next": {"python": 7}}',
       '{"next": 7}', '"~nobody/x"', "[" * 3000, "[" * 200 + "]" * 200]  # fmt: skip


@pytest.mark.parametrize("value", ODD)
def test_whatever_a_key_holds_is_read_or_refused_with_the_key(project: Path, value: str) -> None:
    ours = [("regress", field.name) for field in dataclasses.fields(Settings)]
    for where, key in [*(("", key) for key in (*ASV_KEYS, "matrix", "env_dir")), *ours]:
        path = write(project, {key: "@"} if where else None, **({} if where else {key: "@"}))
        path.write_text(path.read_text().replace('"@"', value))
        refused = _refused(project)
        assert refused is None or refused.fix, (key, value)
        if value in NOT_TEXT:
            assert refused is not None, key
            assert f'"{where or key}"' in refused.what


def _refused(project: Path) -> ConfigError | None:
    try:
        config = load(None, project)
        effective(config)
        own_paths(config)
    except ConfigError as error:
        return error
    return None


def test_a_user_without_a_home_is_told_what_to_set(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    with pytest.raises(ConfigError) as caught:
        cache_dir(read(project))
    assert "REGRESS_CACHE_DIR" in caught.value.fix
    monkeypatch.setenv("REGRESS_CACHE_DIR", "/x")
    assert cache_dir(read(project)).parent == Path("/x")


@pytest.mark.parametrize("name", ["cache_dir", "lock_dir", "acks"])
def test_a_home_of_nobody_is_named_with_its_key(project: Path, name: str) -> None:
    def ask() -> None:
        config = read(project, {name: "~nobody-of-that-name/x"})
        own_paths(config)
        effective(config)

    with pytest.raises(ConfigError) as caught:
        ask()
    assert f'"{name}"' in caught.value.what
