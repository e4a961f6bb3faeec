"""Ops along axes: sums and extrema, running sums, statistics, sets."""
