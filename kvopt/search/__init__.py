"""The search for both sides of an optimum: stages, engines and public functions."""
