"""What the audit computes, on arrays of labels and ranks."""
