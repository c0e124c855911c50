"""Beams by prices of states: schedules of hundreds and thousands of requests in a small cache."""
