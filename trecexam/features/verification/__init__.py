"""What the grader did, shown item by item."""
