"""Text for a terminal or a log: colours, foreign text, and columns.

style  Style, colours, and making foreign text harmless
table  aligned columns
"""
