"""`track.bank`: generates, edits, checks and compares the test bank."""

from __future__ import annotations

from trecexam.calls import Accessor, asking, estimating, named_as_called, on_folder, on_loader
from trecexam.extensions.banks import editing
from trecexam.extensions.banks.check import check_track
from trecexam.extensions.banks.diff import bank_diff
from trecexam.extensions.banks.generation.calls import bank_job


@named_as_called
class BankAccessor(Accessor):
    """The track's test bank."""

    generate = asking(bank_job)
    estimate = estimating(bank_job)
    add_item = on_folder(editing.add_item)
    edit_item = on_folder(editing.edit_item)
    retire_item = on_folder(editing.retire_item)
    edits = on_folder(editing.edits)
    check = on_folder(check_track)
    diff = on_loader(bank_diff)
