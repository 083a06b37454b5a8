"""Selection of passages to judge next."""
