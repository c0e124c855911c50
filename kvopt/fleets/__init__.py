"""Number of machines of a fleet: possible and impossible ones, with proofs."""

from kvopt.fleets.evaluating import FleetMatch, fleet_sizes
from kvopt.fleets.over_time import FleetOverTime, WindowSizes
from kvopt.fleets.scaling import fleet_over_time
from kvopt.fleets.sizes import FleetSizes
from kvopt.fleets.targets import Band

__all__ = [
    "Band",
    "FleetMatch",
    "FleetOverTime",
    "FleetSizes",
    "WindowSizes",
    "fleet_over_time",
    "fleet_sizes",
]
