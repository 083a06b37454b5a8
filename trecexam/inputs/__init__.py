"""Files of a track, as they are read: what is taken, what is rejected and why; the pool."""
