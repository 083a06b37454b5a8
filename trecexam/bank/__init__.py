"""Test banks: which items (exam questions, nuggets) each query has."""

from trecexam.bank.model import Bank

__all__ = ["Bank"]
