"""Agreement of automatic labels with official judgments."""
