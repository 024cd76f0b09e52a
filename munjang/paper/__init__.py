"""The tables and ablations of the Sentence-BERT paper, on a model and data of your choice: `munjang paper`.

`experiments` says what is trained and measured, `work` does one piece of it, `run` all of them, `tables` and `report`
show them beside the figures that `published` took from the paper.
"""
