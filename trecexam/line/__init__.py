"""A track's line: its inputs, the pool, the store, grades and official judgments."""
