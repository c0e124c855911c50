"""Pictures of instances and schedules; matplotlib is loaded with this package only."""

from kvopt.show.optional import optional

optional("matplotlib", "plot")

from kvopt.show.plots.charts import Bar, fleet_over_time, fleet_sizes, intervals
from kvopt.show.plots.figures import plot_instance, plot_runs, plot_schedule
from kvopt.show.plots.panels import bands, memory_profile, rows
from kvopt.show.plots.style import new_figure, refuse_unknown_suffix, save

__all__ = [
    "Bar",
    "bands",
    "fleet_over_time",
    "fleet_sizes",
    "intervals",
    "memory_profile",
    "new_figure",
    "plot_instance",
    "plot_runs",
    "plot_schedule",
    "refuse_unknown_suffix",
    "rows",
    "save",
]
