"""`trecexam serve` and `trecexam serve-user`."""
