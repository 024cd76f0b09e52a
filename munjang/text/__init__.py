"""The tokenizer and its look-up, packing, passages of long documents, sentences, Korean words."""
