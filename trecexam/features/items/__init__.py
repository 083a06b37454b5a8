"""What the grades say of the bank's items."""
