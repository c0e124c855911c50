"""Routers: which worker of a fleet a request goes to."""
