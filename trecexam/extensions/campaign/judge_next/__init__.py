"""What a person should judge next."""
