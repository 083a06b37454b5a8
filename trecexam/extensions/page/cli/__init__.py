"""`trecexam serve`."""
