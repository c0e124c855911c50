"""The schedulers of the papers and their variants, and the registry that finds them by name."""

from kvopt.simulate.policies.by_name import list_policies, policies, policy, register
from kvopt.simulate.policies.in_line import PrefixPolicy
from kvopt.simulate.policies.interface import Need, Policy, View

__all__ = [
    "Need",
    "Policy",
    "PrefixPolicy",
    "View",
    "list_policies",
    "policies",
    "policy",
    "register",
]
