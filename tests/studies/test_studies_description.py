"""Descriptions of studies: what they stand for, and what is wrong with them by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusals import refusal
from studied import BAD_POLICIES, tiny

from kvopt import write_instance
from kvopt.errors import InvalidInput
from kvopt.problem.instance import Instance
from kvopt.problem.requests import Request
from kvopt.problem.scopes import Scope
from kvopt.studies import builtin_names, builtin_study, read_study
from kvopt.studies.description import TaskLimits, builtin_text, resolved_text, study_from_text
from kvopt.studies.tasks import tasks_of

HEAD = 'name = "x"\npolicies = ["mc-sf"]\n'


@pytest.mark.slow
@pytest.mark.parametrize("name", builtin_names())
def test_built_in_studies_are_read_and_come_back_from_their_resolved_text(name: str) -> None:
    study = builtin_study(name)
    assert study.name == name
    assert study_from_text(resolved_text(study), checked=False) == study
    assert builtin_text(name).startswith("# ")


def test_every_part_is_multiplied_out() -> None:
    study = study_from_text(
        HEAD + 'predictions = ["", "pred=noise,eps=0.2"]\n'
        "[limits]\ntime_limit = [1, 2.5]\nthreads = 2\n"
        '[[instances]]\nfamily = "geometric"\nn = [3, 4]\nmemory = 12\ndraws = 3\nseed = 7\n'
        "parameters = { u = [4, 5], q = 0.5 }\n"
        '[[instances]]\nfamily = "arrival-1"\npolicies = ["fcfs", "mc-sf:alpha=0.1"]\n'
    )
    assert study.limits == (TaskLimits(1, 1, 2), TaskLimits(2.5, 2.5, 2))
    assert study_from_text(resolved_text(study)) == study
    assert [(e.n, e.parameters["u"]) for e in study.entries[:4]] == [
        (3, 4), (3, 5), (4, 4), (4, 5),
    ]  # fmt: skip
    assert study.entries[0].policies == ("mc-sf", "mc-sf:pred=noise,eps=0.2")
    assert study.entries[4].policies == (
        "fcfs", "fcfs:pred=noise,eps=0.2",
        "mc-sf:alpha=0.1", "mc-sf:alpha=0.1,pred=noise,eps=0.2",
    )  # fmt: skip
    assert [source.seed for source in study.entries[0].sources()] == [7, 8, 9]
    assert [source.seed for source in study.entries[0].sources(2)] == [7, 8]
    assert len(list(tasks_of(study))) == (4 * 3 + 1) * 2
    assert len(list(tasks_of(study, 1))) == 5 * 2


def test_defaults_are_left_out_of_records() -> None:
    """Keys of records, and so what counts as done, stay as they are for what most studies are."""
    study = study_from_text(HEAD + 'scope = "runs"\n' + ENTRY)
    assert study.limits == (TaskLimits(),)
    assert study.limits[0].to_json() == {
        "time_limit": 60.0, "policy_time_limit": 60.0, "threads": 1, "seed": 0,
    }  # fmt: skip
    assert TaskLimits(scope=Scope.PAUSES).to_json()["scope"] == "pauses"
    for key in ("scope", "slo", "rate", "max_total", "workers", "router"):
        assert f"{key} =" not in resolved_text(study)
    assert study.entries[0].requested == {}


def test_each_time_limit_may_have_its_own_for_policies() -> None:
    limits = "[limits]\ntime_limit = [1, 2, 3]\npolicy_time_limit = [4, 4, 5]\n"
    study = study_from_text(HEAD + limits + ENTRY)
    assert study.limits == (TaskLimits(1, 4), TaskLimits(2, 4), TaskLimits(3, 5))
    assert study_from_text(resolved_text(study)) == study


def test_what_comes_up_twice_is_done_once(tmp_path: Path) -> None:
    path = tmp_path / "instance.csv"
    write_instance(Instance(9, [Request(0, 1, o) for o in (3, 4, 5, 7)]), path)
    (tmp_path / "x.toml").write_text(
        HEAD + '[[instances]]\ninline = "four"\nmemory = 9\n'
        "requests = [[0, 1, 3], [0, 1, 4], [0, 1, 5], [0, 1, 7]]\n"
        '[[instances]]\nfile = "instance.csv"\nmemory = 9\npolicies = ["mc-sf", "fcfs"]\n'
    )
    first, second = tasks_of(read_study(tmp_path / "x.toml"))
    assert first.instance.hash == second.instance.hash
    assert (first.policies, second.policies) == (("mc-sf",), ("fcfs",))


ENTRY = '[[instances]]\nfamily = "arrival-1"\n'
TIMED = 'clock = "seconds"\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("name = ", "is not TOML: Invalid value (at end of document)"),
        (HEAD, "instances: is missing: a study needs tables [[instances]]"),
        (HEAD + "instances = 3\n", "instances: must be a list, got an integer"),
        (HEAD + "colour = 1\n" + ENTRY, "colour: is not a known key; there are name, "),
        (HEAD + ENTRY + "drawz = 2\n", "instances[0].drawz: is not a known key; "),
        (HEAD + ENTRY + ENTRY + "draws = 0\n", "instances[1].draws: must be an integer >= 1"),
        (HEAD + ENTRY + "draws = true\n", "instances[0].draws: must be an integer, got a boolean"),
        (HEAD + ENTRY + "n = [4, 0]\n", "instances[0].n[1]: must be an integer >= 1"),
        (HEAD + ENTRY + "n = []\n", "instances[0].n: must be a list of length >= 1"),
        (
            HEAD + ENTRY + "parameters = { x = 1 }\n",
            "instances[0].family: arrival-1: x: is not a key",
        ),
        (HEAD + '[[instances]]\nfamily = "no"\n', "instances[0].family: no: family: must"),
        (HEAD + "[[instances]]\ndraws = 1\n", "instances[0].family: needs one of family, "),
        (HEAD + ENTRY + 'file = "a.json"\n', "instances[0].family: needs one of family, "),
        (HEAD + '[[instances]]\ngame = "chess"\n', "instances[0].game: is gone: "),
        (HEAD + ENTRY + "requests = []\n", "instances[0].requests: are the requests of an inline "),
        (HEAD + '[[instances]]\nfile = "no.json"\n', "instances[0].file: "),
        (
            HEAD + '[[instances]]\ninline = "a"\nmemory = 9\nrequests = [[0, 1]]\n',
            "instances[0].requests[0]: must be a list of length >= 3",
        ),
        (
            HEAD + '[[instances]]\ninline = "a"\nmemory = 9\nrequests = [[0, 1, 0]]\n',
            "instances[0].inline: a: output: must be at least 1, got 0",
        ),
        (HEAD + "limits = 3\n" + ENTRY, "limits: must be a table, got an integer"),
        (HEAD + "[limits]\ntime_limit = 0\n" + ENTRY, "limits.time_limit: must be a number > 0.0"),
        (
            HEAD + "[limits]\ntime_limit = [1, 2]\npolicy_time_limit = [1, 2, 3]\n" + ENTRY,
            "limits.policy_time_limit: must be a number, or one for each time limit",
        ),
        (HEAD + '[limits]\nthreads = "2"\n' + ENTRY, "limits.threads: must be an integer, "),
        ('policies = ["no"]\n' + ENTRY, "policies: no: policy: must be one of "),
        ('policies = ["mc-sf:x=1"]\n' + ENTRY, "policies: mc-sf:x=1: x: is not a key of "),
        ('policies = ["fcfs", "fcfs"]\n' + ENTRY, "policies: has 'fcfs' twice"),
        ("policies = [1]\n" + ENTRY, "policies[0]: must be a text, got an integer"),
        (ENTRY, "instances[0].policies: is missing: a study needs policies"),
        (HEAD + 'claims = ["no"]\n' + ENTRY, "claims: is gone: python benchmarks/papers/"),
        (HEAD + 'modules = ["no_such"]\n' + ENTRY, "modules: no_such: cannot be loaded: "),
        ('name = "a/b"\n' + ENTRY, "name: must be letters, digits and dashes, got 'a/b'"),
        ("name = 3\n" + ENTRY, "name: must be a text, got an integer"),
        ('clock = "hours"\n' + ENTRY, "clock: must be one of rounds, seconds, got 'hours'"),
        ("clock = 3\n" + ENTRY, "clock: must be a text, got an integer"),
        ('batch_time = "x.json"\n' + ENTRY, 'batch_time: goes with clock = "seconds"'),
        (TIMED + 'batch_time = "no"\n' + ENTRY, "batch_time: batch time: must be one of "),
        (TIMED + "batch_time = 3\n" + ENTRY, "batch_time: must be a text or a table, "),
        (TIMED + "batch_time = { lines = [] }\n" + ENTRY, "batch_time: kv_ns: is missing"),
        ('certify = "no"\n' + ENTRY, "certify: must be a boolean, got a text"),
        (HEAD + 'router = ["nearest"]\n' + ENTRY, "policies: nearest"),
        (HEAD + ENTRY + "workers = [0, 1]\n", "instances[0].workers[0]: must be an integer >= 1"),
        (HEAD + '[limits]\nslo = "soon"\n' + ENTRY, "limits.slo: "),
        (HEAD + "[limits]\nslo = 12\n" + ENTRY, "limits.slo: must be "),
        (
            TIMED + HEAD + '[[instances]]\nfamily = "arrival-2"\n',
            "instances[0].family: arrival-2: round_ms: is missing, so that arrivals have",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(text: str, wanted: str, tmp_path: Path) -> None:
    assert refusal(read_study, tmp_path / "study.toml", text).startswith(wanted)


@pytest.mark.usefixtures("own_things")
def test_policies_of_others_are_loaded_from_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD_POLICIES)
    text = 'modules = ["bad.py"]\npolicies = ["throws"]\n' + ENTRY
    (tmp_path / "mine.toml").write_text(text)
    study = read_study(tmp_path / "mine.toml")
    assert study.name == "mine"
    assert study.modules == (str(tmp_path / "bad.py"),)
    (tmp_path / "bad.py").write_text("1 / 0")
    (tmp_path / "worse.py").write_text("1 / 0")
    (tmp_path / "mine.toml").write_text(text.replace("bad.py", "worse.py"))
    with pytest.raises(InvalidInput, match=r"worse\.py: line 1: cannot be loaded: ZeroDiv"):
        read_study(tmp_path / "mine.toml")


def test_a_name_that_is_no_study_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"study: must be one of arrival-1, .* 'no'"):
        builtin_study("no")


def test_the_tiny_study_of_these_tests_has_no_repeats(tmp_path: Path) -> None:
    assert len(list(tasks_of(read_study(tiny(tmp_path / "tiny.toml", 99))))) == 99


SAMPLES = Path(__file__).parents[2] / "samples"
TRACED = HEAD + (
    '[[instances]]\nfamily = "arrival-1"\nn = 3\n'
    '[[data]]\ntrace = "chat.csv"\nmemory = 2048\nworkers = [1, 2]\n'
    'parameters = { format = "azure", limit = 20 }\n'
)


def test_a_folder_of_traces_takes_the_place_of_stand_ins() -> None:
    (stand_in,) = study_from_text(TRACED).entries
    assert (stand_in.kind, stand_in.n) == ("family", 3)
    study = study_from_text(TRACED, data=SAMPLES)
    assert [each.name for each in study.entries] == [str(SAMPLES / "chat.csv")] * 2
    assert [len(task.source.instance()) for task in tasks_of(study)] == [20, 20]
    assert study_from_text(resolved_text(study)) == study


def test_a_trace_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"data\[0\].trace: .*chat.csv: cannot be read"):
        study_from_text(TRACED, data=tmp_path)
    with pytest.raises(InvalidInput, match="data: is missing: nothing stands for traces"):
        study_from_text(TRACED.partition("[[data]]")[0], data=SAMPLES)
