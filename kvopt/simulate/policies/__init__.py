"""The schedulers of the papers and their variants, and the registry that finds them by name."""

from kvopt.simulate.policies.base import Need, Policy, View
from kvopt.simulate.policies.in_line import PrefixPolicy
from kvopt.simulate.policies.registry import list_policies, policies, policy, register

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
