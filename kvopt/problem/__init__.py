"""The problem: instances, clocks, scopes; their files, traces, families and hardware."""
