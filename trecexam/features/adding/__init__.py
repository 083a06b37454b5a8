"""What people hold in Python, as files of a track: runs, and what `evaluate` is given."""
