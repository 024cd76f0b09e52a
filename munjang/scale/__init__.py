"""Work on more than one machine: encode on Ray Data, search its files exactly, plan a billion sentences."""
