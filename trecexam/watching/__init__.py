"""What the daemon stands on: file events, when a file counts, one writer per track."""
