"""The problem as models: a readable Pyomo reference, sparse arrays equal to it, and CP-SAT."""
