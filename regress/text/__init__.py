"""Text for a terminal or a log: colours, foreign text, columns, and the parts of messages.

style  Style, colours, and making foreign text harmless
table  aligned columns
wording  counts, lists that end early, what a misspelt word may mean, command lines
"""
