"""Office files to texts, a file for each format with a function `read`. To add one: a file here, a line in FORMATS.

They are read in a child process (child.py) with limits of time and memory (extractor.py): what a stranger wrote may be
broken or hostile.
"""

# suffix: the module that reads it
FORMATS = {
    ".hwpx": "hwpx",
    ".pdf": "pdf",
    ".eml": "mail",
    ".docx": "markdown",
    ".pptx": "markdown",
    ".xlsx": "markdown",
    ".html": "markdown",
    ".htm": "markdown",
    ".epub": "markdown",
    ".msg": "markdown",
}
