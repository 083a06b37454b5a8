"""What is dropped, filled and compared: arithmetic alone."""
