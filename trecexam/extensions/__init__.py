"""What stands around the core, a folder each: they know the core, and the core is to know none of them."""
