"""The foundation of all packages: trees of tensors, checks of arguments, errors and warnings with
the user's line.

In: Python values. Out: tensors, dtypes, checked numbers, texts. It knows the core and nothing above itself.
"""
