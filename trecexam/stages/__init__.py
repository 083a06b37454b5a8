"""The stages between files and outputs; `trecexam.pipeline` joins them."""
