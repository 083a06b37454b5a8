"""What learning adds to `trecexam`."""
