"""The schedulers of the papers and their variants, and the registry that finds them by name."""

from kvopt.policies.base import Need, Policy, View
from kvopt.policies.prefix import PrefixPolicy
from kvopt.policies.registry import list_policies, policies, policy, register

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
