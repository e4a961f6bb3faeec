"""Ops of single elements: one result for each element, or for each pair that broadcasting gives."""
