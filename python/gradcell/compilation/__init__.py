"""How an outermost call runs: traced, planned, and kept by the signature of its arguments.

In: a function and its arguments. Out: tensors, from a plan that the next such call finds again.
"""
