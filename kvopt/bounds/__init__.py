"""Lower bounds on total latency, each re-evaluated in integers."""
