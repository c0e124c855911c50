"""Runs on a clock of seconds: rollouts by prices of machine time, orders behind routers."""
