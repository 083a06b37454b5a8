"""Test banks by a language model: `trecexam bank generate`."""
