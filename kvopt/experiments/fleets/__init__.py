"""Number of machines of a fleet: possible and impossible ones, with proofs."""

from kvopt.experiments.fleets.running import FleetMatch, fleet_sizes
from kvopt.experiments.fleets.sizes import Band, FleetSizes

__all__ = ["Band", "FleetMatch", "FleetSizes", "fleet_sizes"]
