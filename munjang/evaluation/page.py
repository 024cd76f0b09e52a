"""Reports as a page: bars of the main metrics, the table, every metric."""

from collections.abc import Sequence

from munjang.evaluation.report import Report, cells, comparisons, shown, with_interval
from munjang.pages.bars import Bar, bars
from munjang.pages.blocks import section, table
from munjang.pages.chart import NUM_COLOURS
from munjang.pages.document import page
from munjang.pages.html import Html, element, say


def reports_page(reports: Sequence[Report]) -> str:
    """Return the page of all reports, the models side by side.

    Bars go from 0 to 100; a negative or undefined metric has none, only its number.
    """
    models = list(dict.fromkeys(report.model for report in reports))
    colours = {model: place % NUM_COLOURS for place, model in enumerate(models)}
    datasets = {
        key: [report for report in reports if (report.dataset, report.kind) == key]
        for key in dict.fromkeys((report.dataset, report.kind) for report in reports)
    }
    groups = [
        (f"{dataset}: {of_dataset[0].main}", [_bar(report, colours[report.model]) for report in of_dataset])
        for (dataset, _), of_dataset in datasets.items()
    ]
    _, *rows = cells(reports)
    heads = [say("dataset"), say("kind"), say("rows"), say("metric"), *models]
    lines = [element("p", line) for line in comparisons(reports)]
    sections = [bars(say("main_metric"), groups), section(say("summary"), table(heads, rows))]
    sections += [section(say("differences"), *lines, note=say("differences_note"))] if lines else []
    sections += [_details(f"{dataset} ({kind})", of_dataset) for (dataset, kind), of_dataset in datasets.items()]
    return page(say("evaluation"), sections=sections)


def _bar(report: Report, colour: int) -> Bar:
    is_defined = report.score == report.score  # NaN is not
    return Bar(report.model, report.score if is_defined else 0.0, shown(report.main, report.score), colour)


def _details(title: str, reports: Sequence[Report]) -> Html:
    names = list(dict.fromkeys(name for report in reports for name in report.metrics))
    rows = [[name, *(with_interval(report, name) for report in reports)] for name in names]
    notes = [element("p", *_circumstances(report), class_="hint") for report in reports]
    return section(title, table([say("metric"), *(report.model for report in reports)], rows), *notes)


def _circumstances(report: Report) -> list[object]:
    values = {"model": report.model, "machine": report.machine, "date": report.date}
    notes = "".join(f" {note[:1].upper()}{note[1:].removesuffix('.')}." for note in report.notes)
    return [say("circumstances", seconds=f"{report.seconds:.1f}", **values), notes]
