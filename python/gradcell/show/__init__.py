"""Shows graphs and plans as text, as pictures, and in a notebook.

In: functions, cells, graphs. Out: text and HTML.
"""
