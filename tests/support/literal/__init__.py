"""Slow, literal transcriptions of published scheduling algorithms, used as oracles in tests."""
