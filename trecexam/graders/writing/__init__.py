"""Language models that write free text, for test banks: in this process, on a cluster, or behind a server."""
