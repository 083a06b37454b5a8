"""Files of out/, the report, and the update that writes them."""
