"""What commands refuse: named on standard error, with exit status 2, and nothing is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from commands import EC1, Run

from kvopt import Instance, Request, Schedule, write_instance
from kvopt.timetable.run_files import RecordedRun, write_run

REDUCE = "reduce three-partition --target 20"

REFUSED = [
    # what is asked for
    ("solve ec1.json --engine cplex", "engine"),
    ("solve ec1.json -e pyomo --pyomo-solver nosuch", "available: highs"),
    ("solve ec1.json --time-limit -1", "--time-limit"),
    ("solve ec1.json --threads 0", "--threads"),
    ("solve ec1.json --start missing.json", "missing.json"),
    ("solve ec1.json --scope pauses --engine exact", "engine with pauses: must be one of auto, "),
    ("solve ec1.json --seconds --engine exact", "seconds"),
    ("solve ec1.json --seconds --start s.json", "seconds"),
    ("solve ec1.json --seconds -o out.json", "seconds"),
    ("solve ec1.json --batch-time llama-2-70b-2xa100", "seconds"),
    ("solve ec1.json --workers 2 --seconds --batch-time nothing", "batch time: must be one of"),
    ("solve ec1.json --params wrong.toml", "wrong.toml: exact.serchable: is not one of"),
    ("bound ec1.json --method magic", "volume"),
    ("bound ec1.json --ram much", "ram: must be a size such as 4G or 512M, got 'much'"),
    ("bound ec1.json --scope pausse", "must be one of runs"),
    (
        "bound ec1.json --scope pauses --method configuration",
        "method with pauses: must be one of volume, lagrangian, auto",
    ),
    ("certify ec1.json -o out.json -P nosuch", "policy"),
    ("certify ec1.json -o out.json -P nosuch --seconds", "nosuch"),
    ("certify ec1.json -o out.json --schedule missing.json", "missing.json"),
    ("certify ec1.json -o out.json -t -1", "--time-limit"),
    (
        "certify ec1.json --seconds --params wrong.toml",
        "wrong.toml: exact.serchable: is not one of",
    ),
    ("certify ec1.json -o out.json --batch-time llama-2-70b-2xa100", "goes with --seconds"),
    ("certify ec1.json -o out.json --seconds --batch-time fast", "batch time: must be"),
    ("certify ec1.json -o out.json --seconds --schedule s.json", "goes without --seconds"),
    ("certify late.json -o out.json --seconds", "late.json: round_ms: is missing"),
    ("certify ec1.json -o out.json --slo soon", "slo: must be ttft=2s,tpot=50ms"),
    ("certify ec1.json -o out.json --slo e2e=0", "e2e: must be at least 1 round or nano"),
    (
        "certify ec1.json -o out.json --deadline 9",
        "--deadline: deadlines are service levels: --slo",
    ),
    ("certify ec1.json -o out.json --slo e2e=30s", "ec1.json: round_ms: is missing"),
    (
        "certify ec1.json -o out.json --slo own",
        "ec1.json: request 'r0': ttft, tpot, e2e: is missing",
    ),
    ("certify -o out.json", "options: give FILE or --run, one of them"),
    ("certify ec1.json --run run.json -o out.json", "options: give FILE or --run, one of them"),
    ("certify --run run.json -m 5 -o out.json", "--memory: goes without a recorded run"),
    ("certify --run run.json --batch-time m.json -o out.json", "--batch-time: goes with --seconds"),
    ("certify --run no.json -o out.json", "no.json"),
    ("certify --run run.json --block-size 5 -t 1 -o out.json", "blocks of 5 tokens held"),
    ("run ec1.json -P nonsense", "policy: must be one of"),
    ("run ec1.json -P mc-sf -P fcfs -o both.json", "-o: goes with a single --policy"),
    ("run ec1.json -P svf --batch-time x.json", "--batch-time: goes with --seconds"),
    ("run ec1.json -P svf --timeline x.csv", "--timeline: goes with --seconds"),
    ("run ec1.json -P svf --seconds -o s.json", "-o: goes with rounds"),
    ("run ec1.json -P svf --seconds --batch-time gpt", "batch time: must be one of"),
    ("run ec1.json -P svf --seconds --batch-time none.json", "none.json: cannot be read"),
    ("run blocks.json -P fcfs --block-size 9", "needs 1 blocks of 9 tokens, memory has 0"),
    *(
        (f"{command} bad.json", "kvopt: bad.json: request 'r2': output: ")
        for command in ("solve", "bound", "export -o out.lp")
    ),
    (
        "solve shared.json --engine exact",
        "kvopt: shared.json: request 'last': weight: is not known by ",
    ),
    # fleets
    ("fleet ec1.json", "options: give --match, --target or --attain, one of them"),
    ("fleet ec1.json --match fcfs --target mean=3", "options: give --match, --target"),
    ("fleet ec1.json --target mean=3 --workers 2", "--workers: goes with --match"),
    ("fleet ec1.json --target misses=1%", "--target: misses are given as --attain 99%"),
    ("fleet ec1.json --attain 99%", "--attain: needs a service level"),
    ("fleet ec1.json --attain 99% --slo e2e=5s", "ec1.json: round_ms: is missing"),
    ("fleet ec1.json --target mean=1", "--target: cannot be met by any number of machines"),
    ("fleet ec1.json --target mean=3 --counts 0..2", "--counts: must rise from 1"),
    ("fleet ec1.json --target mean=3 --counts 3..2", "--counts: must rise from 1"),
    ("fleet ec1.json --target mean=3 --counts 1-2", "--counts: must be 1..12 or 2,4,8"),
    ("fleet ec1.json --target mean=3 --counts 1..9999", "--counts: has more than 1,000"),
    ("fleet ec1.json --target mean=3 --router nearest", "nearest"),
    ("fleet ec1.json --target mean=3 -P fsfs", "fsfs"),
    ("fleet ec1.json --match fsfs --out fleets", "fsfs"),
    (
        "fleet ec1.json --target mean=3 --counts 2 --router central -P vllm-fcfs:block=1",
        "name a router that sends requests on arrival",
    ),
    # files and pictures
    ("generate nosuch -o out.json", "family"),
    ("generate arrival-2 -p rate=fast -o out.json", "kvopt: rate: "),
    ("generate two-point -p u -o out.json", "key=value"),
    ("generate two-point -p u=3 -p u=4 -o out.json", "has u twice"),
    ("generate arrival-1 --memory 3 -o out.json", "kvopt: memory: "),
    ("import bad.csv -f azure -m 9 -o out.json", "bad.csv: holds no request that can be used"),
    ("import no.csv -f azure -m 9 -o out.json", "no.csv: cannot be read"),
    ("plot ec1.json --policy fcfs --schedule ec1.json -o x.svg", "--schedule"),
    ("plot ec1.json -o x.gif", "must end in"),
    ("plot ec1.json -o -", "must end in"),
    ("plot run.json --schedule s.json -o x.svg", "--schedule: goes without a recorded run"),
    ("plot run.json --seconds -o x.svg", "--seconds: goes with --policy"),
    ("plot run.json -m 5 -o x.svg", "--memory: goes without a recorded run"),
    ("plot run.json --workers 2 -o x.svg", "--workers: goes without a recorded run"),
    *(
        (
            f"export ec1.json -o {name}",
            f"kvopt: --output {name}: must end in one of .mps, .mps.gz, .lp, .lp.gz; another name "
            "needs --format\n",
        )
        for name in ("a.sol", "a.gz", "a.txt.gz", "model-v1.2")
    ),
    # what left
    ("solve ec1.json --module mine.py", "No such option: --module"),
    ("bound ec1.json --module=mine.py", "No such option: --module"),
    ("solve ec1.json --params older.toml", "older.toml: exact.width: is a constant now"),
    ("verify ec1.json --naive", "--naive: left kvopt: "),
    ("verify ec1.json --proved", "--proved: left kvopt: run `make check-proved FILES=...`"),
    # research
    ("hunt -P mc-sf --n 3", "kvopt: hunt: is a script of the source tree: python benchmarks/"),
    ("theory", "kvopt: theory: is a script of the source tree: python benchmarks/papers/theory.py"),
    ("submit c.json", "kvopt: submit: is a script of the source tree: python instances/submit.py"),
    ("plot ec1.json --seconds -o x.svg", "--seconds: goes with --policy"),
    ("study pauses.toml --out out", "vllm-fcfs:block=1: pauses requests with tokens kept"),
    ("study smoke", "--out"),
    ("reduce knapsack --target 20 6 7 7", "three-partition"),
    (f"{REDUCE} -o never.json", "X1"),
    (f"{REDUCE} 6 7 8 -o never.json", "numbers: must sum to mB = 20, got 21"),
    (f"{REDUCE} 6 7 x -o never.json", "Invalid value"),
    # tools
    ("hardware capacity --model gpt", "--model: must be one of"),
    ("hardware capacity --gpu gpt", "--gpu: must be one of"),
    ("hardware capacity --fraction 1.5", "fraction: must be above 0"),
    ("hardware capacity --fraction half", "--fraction: must be a number"),
    ("hardware capacity --gpus 1", "llama-2-70b: has no room"),
    ("hardware capacity llama-3-8b@h100 --gpus 2", "kvopt: MACHINE: goes without --gpus"),
    ("hardware capacity llama-3-8b@h100 --gpu-memory 80", "MACHINE: goes without --gpu-memory"),
    ("hardware capacity llama-3-8b", "MACHINE: must be MODEL@GPU or MODEL@NxGPU"),
    ("hardware capacity llama-3-8c@h100", "kvopt: MACHINE: model: must be one of"),
    ("hardware capacity llama-3-8b@h10", "kvopt: MACHINE: GPU: must be one of"),
    ("hardware capacity --gpu h20", "did you mean h200?\n"),
    ("hardware show llama-3-8@h100", "did you mean llama-3-8b?\n"),
    ("run ec1.json -P slo --attain 99%", "--attain: goes with --slo"),
    ("export ec1.json --upper 12 --schedule s.json -o o.lp", "--upper: goes without --schedule"),
    ("run missing.json -P mc-sf --seconds", "kvopt: missing.json: cannot be read: No such file"),
    ("info -v -q", "--quiet: goes without --verbose"),
    ("info --log -", "--log -: must be a file"),
    ("info --log /nowhere/a.log", "--log /nowhere/a.log: cannot be written: No such file"),
    # standard output holds one thing
    *(
        (
            f"{command} -o {name} --json",
            f"kvopt: --output {name}: goes without --json: both are standard output\n",
        )
        for command in ("run ec1.json -P svf", "certify ec1.json", "hardware fit batches.csv")
        for name in ("-", "/dev/fd/1")
    ),
    (f"{REDUCE} 6 7 7 --output - --certificate -", "goes without --certificate -"),
    # names that left
    ("plot ec1.json --prices -o x.svg", "--prices: left kvopt: `kvopt.bounds.lagrangian_bound"),
    ("report out --latex t.tex", "--latex: left kvopt: `to_dataframe().to_latex()` of pandas"),
    ("certify ec1.json --slower -o c.json", "--slower: slower machines left kvopt: `kvopt fleet`"),
    # names that are nearly right
    ("run ec1.json -P mc-fs", "; did you mean mc-sf?\n"),
    ("run ec1.json -P mc-sf:alhpa=1", "; did you mean alpha?\n"),
    ("run ec1.json -P mc-sf:pred=uper", "; did you mean upper?\n"),
    ("run ec1.json -P fcfs --workers 2 --router least-request", "; did you mean least-requests?\n"),
    ("run ec1.json -P svf --seconds --batch-time llama-2-70b-2xa10", "mean llama-2-70b-2xa100?\n"),
    ("solve ec1.json -e hihgs", "; did you mean highs?\n"),
    ("bound ec1.json --method volum", "; did you mean volume?\n"),
    ("generate arival-1 -o out.json", "; did you mean arrival-1?\n"),
    ("generate two-point -p shrae=1 -o out.json", "; did you mean share?\n"),
    ("study smok", "; did you mean smoke?\n"),
    ("study nearly.toml --out out", "did you mean l40s?"),
    ("import ec1.json -f asure -m 9 -o out.json", "; did you mean azure?\n"),
    ("export ec1.json --format msp -o out.lp", "; did you mean mps?\n"),
    ("export ec1.json --formulation relax -o out.lp", "; did you mean relaxed?\n"),
    ("hardware capacity --model mistral7b", "; did you mean mistral-7b?\n"),
    ("hardware capacity --gpu a10-24", "; did you mean a10-24gb?\n"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of each kind; no command that is refused changes it."""
    made = tmp_path_factory.mktemp("refused")
    (made / "ec1.json").write_text(json.dumps(EC1))
    (made / "bad.json").write_text(json.dumps(EC1).replace('"output": 3', '"output": true'))
    rows = [Request(0, 4, 2, prefix=[*path]) for path in ("ab", "ac")]
    rows.insert(0, Request(0, 1, 1, weight=2, id="last"))
    write_instance(Instance(9, rows, block_tokens=2), made / "shared.json")
    (made / "s.json").write_text('{"schema": "kvopt.schedule/1", "starts": [0, 0, 0, 2]}')
    (made / "older.toml").write_text("[exact]\nwidth = 50\n")
    (made / "wrong.toml").write_text("[exact]\nserchable = 50\n")
    (made / "bad.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nx\n")
    (made / "batches.csv").write_text("tokens,milliseconds\n1,2\n2,3\n4,5\n")
    entry = '[[instances]]\nfamily = "arrival-1"\n'
    (made / "pauses.toml").write_text(f'policies = ["vllm-fcfs:block=1"]\n{entry}')
    (made / "nearly.toml").write_text(
        f'clock = "seconds"\nbatch_time = "qwen2.5-7b@l40"\npolicies = ["svf"]\n{entry}'
    )
    write_instance(Instance(5, [Request(2, 1, 1)]), made / "late.json")
    blocks = Instance(8, [Request(0, 0, o) for o in (2, 2, 1)])
    write_instance(blocks, made / "blocks.json")
    schedule = Schedule(blocks, segments=[[(1, 2)], [(1, 2)], [(3, 3)]])
    write_run(RecordedRun("vllm", schedule, 4), made / "run.json")
    return made


@pytest.mark.parametrize(("command", "said"), REFUSED, ids=[command for command, _ in REFUSED])
def test_refusals_name_what_is_wrong_and_write_nothing(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.chdir(folder)
    before = {path.name for path in folder.iterdir()}
    err = run.refused(*shlex.split(command))
    assert said in err
    assert "Value error" not in err
    lines = [line for line in err.splitlines() if not line.startswith("assumed: ")]
    assert len(lines) == 1 or lines[0].startswith("Usage: kvopt ")
    assert {path.name for path in folder.iterdir()} == before
