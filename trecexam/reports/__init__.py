"""Rendering only: tables, JSON, files. No computation."""
