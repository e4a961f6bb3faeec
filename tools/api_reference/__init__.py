"""The reference of the public names: which there are (names), in which group each is (groups), what its
docstring says (docstrings), the pages (pages), and examples that a test runs (examples/*.txt)."""
