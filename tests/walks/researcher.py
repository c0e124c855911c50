"""The first hour of an OR researcher: an optimum, a policy, a solver, a table for a paper."""

from __future__ import annotations

from walking import Walk

POLICY = '''
from dataclasses import dataclass
from kvopt import PrefixPolicy, register

@register
@dataclass
class Aging(PrefixPolicy):
    """Shortest believed answer first, older requests a little earlier."""

    name = "aging"
    source = "a notebook"
    weight: int = 10

    def key(self, view, i):
        return (self.weight * view.beliefs.output[i] + view.arrivals[i],)
'''

ELSEWHERE = """
import highspy
solver = highspy.Highs()
solver.setOptionValue("output_flag", False)
solver.readModel("model.lp")
solver.run()
solver.writeSolution("model.sol", 0)
print(round(solver.getInfo().objective_function_value))
"""

FRAME = """
import kvopt
instance = kvopt.read_instance("a.json")
run = kvopt.run(instance, "mc-sf")
frame = run.to_dataframe()
assert len(frame) == len(instance)
print(frame.describe())
"""


def first_hour(walk: Walk) -> None:
    """Do what a researcher tries first."""
    walk.kvopt("draw an instance", "generate arrival-1 --n 6 --seed 3 -o a.json")
    best = walk.asked("prove its optimum", "solve a.json -o best.json")
    assert best["status"] == "optimal"
    assert best["objective"] == best["lower_bound"]

    walk.write("aging.py", POLICY)
    ran = walk.asked(
        "run a policy of one's own", "run a.json --module aging.py --policy aging --policy mc-sf"
    )
    assert [row["policy"] for row in ran["policies"]] == ["aging", "mc-sf"]
    assert all(row["objective"] >= best["objective"] for row in ran["policies"])
    walk.kvopt("certify it", "certify a.json --module aging.py --policy aging -o aging.cert.json")
    assert "VALID" in walk.kvopt("verify", "verify aging.cert.json")

    walk.kvopt(
        "export the model", "export a.json --formulation time-indexed --format lp -o model.lp"
    )
    assert int(walk.script("solve it elsewhere", ELSEWHERE)) == best["objective"]
    assert "feasible" in walk.kvopt("check that solution", "check a.json model.sol")
    again = walk.asked("begin from it", "solve a.json --start model.sol")
    assert again["objective"] == best["objective"]
    walk.script("a data frame of a run", FRAME)
