"""Ops of layers, losses and optimisers."""
