"""The classes that MindSpore has beside its functions: a primitive for each op."""
