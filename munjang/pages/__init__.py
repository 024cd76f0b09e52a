"""Every HTML file that Munjang writes: one template, one style sheet, one chart, in Korean and English.

A renderer gives its content to `document.page`: facts, tables and charts made by the functions of this folder. The
result is a single file that needs no network. The server's search page shares base.css, theme.js and icon.svg.
"""
