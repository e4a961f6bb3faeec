"""What every room stands on: trees of tensors, checks of arguments, what errors and warnings say and where.

In: Python values. Out: tensors, dtypes, checked numbers, texts. It knows the core and nothing above itself.
"""
