"""Whether the passages that responses cite support the sentences that cite them."""
