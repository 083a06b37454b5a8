"""How far automatic labels agree with official judgments."""
