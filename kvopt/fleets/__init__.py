"""Number of machines of a fleet: possible and impossible ones, with proofs."""

from kvopt.fleets.over_time import FleetOverTime, WindowSizes
from kvopt.fleets.running import FleetMatch, fleet_sizes
from kvopt.fleets.scaling import fleet_over_time
from kvopt.fleets.sizes import Band, FleetSizes

__all__ = [
    "Band",
    "FleetMatch",
    "FleetOverTime",
    "FleetSizes",
    "WindowSizes",
    "fleet_over_time",
    "fleet_sizes",
]
