"""What track organizers ask of a track: gathers what `trecexam.scores` computes on."""
