"""Shares of time of the steps of one stage; the plan has those of stages.

`kvopt.search.plan` gives every stage a share of the remaining time.  The steps of a stage, for
example beams and local search, divide it by one of these shares.
"""

from __future__ import annotations

# ---- better schedules of one worker --------------------------------------------------------------

TRACE_BEAMS = 0.95
"""Beams over a whole trace; local search has the rest."""
SHARING_BEAMS = 0.75
"""Beams over a whole trace with shared prefixes; local search has the rest."""

# ---- better schedules of a fleet -----------------------------------------------------------------

PLACED_MANY, PLACED_FEW = 0.85, 0.1
"""Assignment of requests to workers: for many requests, and where moves find more."""

# ---- exact searches ------------------------------------------------------------------------------

CLIMB_BEFORE_SEARCH = 0.5
"""Ascent of prices of states; searches with their remaining starts have the rest."""
LOCAL_SEARCH_BESIDE = 0.2
"""Local search in a thread parallel to forward searches."""
CLIMB_OF_TOKENS = 0.3
"""Ascent of prices of tokens before a search, if none are known and the LP is too large."""
COMPLETIONS = 0.6
"""Cost-to-go bounds before the last searches."""

# ---- servers -------------------------------------------------------------------------------------

SERVERS_ON_SAMPLE = 0.3
"""Coarse settings of servers on a sample, or in loops; finer ones on all requests have the rest."""
SERVERS_BY_LOAD = 0.5
"""Settings by load, of the time that other settings left."""
SERVERS_OVER_TIME = 0.9
"""Settings that change over time; their run is checked after it."""

# ---- service levels ------------------------------------------------------------------------------

MACHINE_TIME = 0.5
"""Prices of machine time for a ceiling; those of shared rounds have the rest."""
SCHEDULERS_IN_TIME = 0.3
"""Runs of schedulers, before the search for a schedule."""
ORDERS_IN_TIME = 0.3
"""Orders by due times, before requests are exchanged."""
RUNS_IN_TIME = 0.4
"""Moves between workers of a fleet in seconds, after each worker has searched by itself."""

# ---- headroom ------------------------------------------------------------------------------------

HEADROOM_TODAY = 0.4
"""The run of the scheduler of today, which all else is compared with."""
HEADROOM_SETTINGS = 0.4
"""Servers with other settings, of what that run left; they often end before."""
HEADROOM_MACHINES = 0.4
"""Numbers of machines, of what is left then, if there is a service level."""
HEADROOM_NARROWER = 0.2
"""A narrower scope, of the rest; it is not used if the interval of the wide one decides."""
