"""Outermost calls: traced, planned, and cached by the signature of their arguments.

In: a function and its arguments. Out: tensors, from a plan that the next such call finds again.
"""
