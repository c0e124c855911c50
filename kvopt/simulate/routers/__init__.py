"""Routers: they choose a worker of a fleet for each request."""
