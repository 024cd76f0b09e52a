"""Applications of sentence vectors, one folder each, with functions of texts or of ready vectors.

>>> from munjang import BiEncoder
>>> from munjang.tasks.keywords import keywords
>>> keywords(["Supervised learning learns from labelled examples."], BiEncoder.load())[0][0].text
'learning'
"""
