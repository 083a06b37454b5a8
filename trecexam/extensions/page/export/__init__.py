"""A read-only copy of the page in files, which any web server shows: `trecexam serve --export`."""
