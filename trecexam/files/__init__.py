"""Writing files whole, locks, and when a file changed."""
