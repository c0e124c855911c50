"""Number of machines of a fleet: possible and impossible ones, with proofs."""

from kvopt.fleets.running import FleetMatch, fleet_sizes
from kvopt.fleets.sizes import Band, FleetSizes

__all__ = ["Band", "FleetMatch", "FleetSizes", "fleet_sizes"]
