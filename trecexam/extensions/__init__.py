"""The extensions, a folder each. They import the core; the core imports none of them."""
