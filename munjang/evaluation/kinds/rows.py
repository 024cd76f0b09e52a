"""Rows for the kinds that read one table."""

from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Settings, Source


def read_rows(
    source: Source, settings: Settings, num_texts: tuple[int, int | None], target: str | None = None
) -> Examples:
    """Read examples with so many texts, and `labels` or `scores` where `target` names them."""
    if isinstance(source, Examples):
        examples = source if settings.max_rows is None else source.take(range(min(len(source), settings.max_rows)))
    else:
        examples = read_examples(
            source,
            texts=settings.texts,
            label=settings.label,
            score=settings.score,
            target=target,
            num_texts=num_texts,
            labels=settings.labels,
            score_range=settings.score_range,
            format=settings.format,
            max_rows=settings.max_rows,
            split=settings.split,
        )
    least, most = num_texts
    if len(examples.texts) < least or (most is not None and len(examples.texts) > most):
        wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
        raise InputError(f"{examples.name}: {wanted} text columns are needed, not {len(examples.texts)}.")
    if not len(examples):
        raise InputError(f"{examples.name} has no rows.")
    if target is not None and getattr(examples, target) is None:
        raise InputError(f"{examples.name}: there are no {target}; name their column with {target[:-1]}=.")
    return examples
