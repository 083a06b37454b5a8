"""Several graders on one track: each against the official side, and any two with each other."""
