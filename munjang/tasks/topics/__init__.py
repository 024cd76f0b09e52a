"""Topics of a pile of texts: found, named, changed, followed over time, drawn."""
