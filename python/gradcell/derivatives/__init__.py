"""Derivatives of functions: reverse and forward mode, jets, batches, custom rules, and checks of them.

In: a function of tensors. Out: a function of the same tensors that gives its derivatives.
"""
