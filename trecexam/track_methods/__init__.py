"""The methods of `trecexam.Track`, by what they are for."""
