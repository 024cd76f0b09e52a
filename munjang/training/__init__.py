"""Training: configuration, loop, step, run folder, report, card; hard negatives, a domain's texts."""
