"""Tensors in Python: made of arrays and numbers, indexed, printed, given to NumPy; parameters.

In: the core's class of tensors. Out: the same class with what MindSpore's can do.
"""
