"""Commands on learned labels."""
