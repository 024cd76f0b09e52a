"""Books for a need in words, and for who likes some of them, with the reasons.

python examples/books/find.py --need "우울할 때 위로가 되는 소설"                60 made-up books beside this file
python examples/books/find.py --like b11 b13 --model FOLDER
python examples/books/find.py --catalogue korean-books.tsv.xz --need "..."    your own: a title, an id (isbn13), a text
"""

import argparse
from pathlib import Path

from munjang import BiEncoder
from munjang.data.tables import read_rows
from munjang.tasks.recommend import Items, RecommendConfig, explain, recommend

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--catalogue", default=str(Path(__file__).with_name("books.tsv")))
parser.add_argument("--need", help="what is looked for, in words")
parser.add_argument("--like", nargs="+", default=[], help="ids of books")
parser.add_argument("--model", help="folder or Hub name of a model that knows Korean (default: the bundled one)")
parser.add_argument("-k", type=int, default=5)
options = parser.parse_args()
need = options.need if options.need or options.like else "우울할 때 위로가 되는 소설"

columns: list[str] = []
rows = [values for _, values in read_rows(options.catalogue, lambda found: columns.extend(found) or found)]
books = [dict(zip(columns, map(str, values), strict=True)) for values in rows]
by_id = {book.get("id") or book["isbn13"]: book for book in books}  # a catalogue may list a book twice
texts = [f"{book['title']}. {book['text']}" if "text" in book else book["title"] for book in by_id.values()]

model = BiEncoder.load(options.model)
items = Items.of_texts(texts, model, by_id)
found = recommend(items, options.like, need=need, config=RecommendConfig(k=options.k, diversity=0.2))
print(f"{len(books):,} books; {need or 'for ' + ', '.join(by_id[id]['title'] for id in options.like)}\n")
for each in explain(found, model, need):
    why = "" if each.because is None else f"  like {by_id[each.because]['title']}"
    print(f"{each.score:.3f}  {by_id[each.id]['title']}  ({', '.join(each.keywords)}){why}")
