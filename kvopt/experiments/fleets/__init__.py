"""How many machines a fleet needs: what is possible with each number, and what is not."""

from kvopt.experiments.fleets.running import FleetMatch, fleet_sizes
from kvopt.experiments.fleets.sizes import Band, FleetSizes

__all__ = ["Band", "FleetMatch", "FleetSizes", "fleet_sizes"]
