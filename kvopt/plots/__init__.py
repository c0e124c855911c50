"""Pictures of instances and schedules; matplotlib is loaded with this package only."""

from kvopt.show.optional import optional

optional("matplotlib", "plot")

from kvopt.plots.curves import theory_curves
from kvopt.plots.figures import plot_instance, plot_run, plot_runs, plot_schedule
from kvopt.plots.fleets import fleet_sizes
from kvopt.plots.intervals import intervals
from kvopt.plots.memory import memory_profile, price_curve
from kvopt.plots.running import bands, rows, run_memory
from kvopt.plots.style import refuse_unknown_suffix, save
from kvopt.plots.timeline import gantt

__all__ = [
    "bands",
    "fleet_sizes",
    "gantt",
    "intervals",
    "memory_profile",
    "plot_instance",
    "plot_run",
    "plot_runs",
    "plot_schedule",
    "price_curve",
    "refuse_unknown_suffix",
    "rows",
    "run_memory",
    "save",
    "theory_curves",
]
