"""Language models that write free text, for test banks: in this process, on a cluster, or behind a server."""

from trecexam.graders.writing.base import Unwritten, Writer, Written
from trecexam.graders.writing.create import create_writer

__all__ = ["Unwritten", "Writer", "Written", "create_writer"]
