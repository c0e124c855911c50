"""Runs on a clock of seconds: beams by prices of machine time, orders behind routers."""
