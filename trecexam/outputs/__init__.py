"""What is in out/: every file, the report's page, and the update that writes them."""
