"""Text in a terminal or a log: how it is painted, what becomes of text from outside, and columns.

style  how to print: Style, colours, what becomes of text that did not come from us
table  aligned columns
"""
