"""Both sides of an answer while it is looked for: incumbent, proofs, limits, the result."""
