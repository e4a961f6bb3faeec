"""Ops of functions and processes: loops, maps, transforms, ops of one's own, collectives, summaries."""
