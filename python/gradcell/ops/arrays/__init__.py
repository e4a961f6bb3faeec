"""Ops that make arrays, change their shape or order, and read and write elements at positions."""
