"""Both sides of an answer during the search: incumbent, proofs, limits, the result."""
