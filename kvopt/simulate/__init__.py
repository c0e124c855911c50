"""Policies, routers, and the servers that they run on."""
