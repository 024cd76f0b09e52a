"""Films like these, diverse ones, and films for a need in words.    Run: python examples/recommend.py"""

from munjang import BiEncoder
from munjang.tasks.recommend import Items, RecommendConfig, explain, recommend, similar

FILMS = {  # made up
    "Cold Orbit": "A lone engineer repairs a space station above a frozen moon.",
    "Red Harvest Moon": "Farmers on Mars fight a drought with old machines.",
    "The Last Shuttle": "Astronauts race home before their shuttle loses its air.",
    "Signal from Vega": "Scientists answer a message from a distant star.",
    "Two Tickets to Rome": "Strangers share a train compartment and fall in love in Italy.",
    "Letters in June": "A bookseller falls in love with the writer of anonymous letters.",
    "The Bakery on Elm Street": "A shy baker wins a heart with bread and kindness.",
    "Silent Witness": "A detective hunts a murderer whom only a deaf girl has seen.",
    "The Ninth Alibi": "A lawyer doubts the confession of a killer.",
    "Ashes in the Harbour": "A policeman finds a body in a burning warehouse.",
    "The Fox and the Lantern": "An animated fox brings light to a dark forest, for small children.",
    "Dinosaur Camp": "Children spend a summer with friendly dinosaurs.",
}
model = BiEncoder.load(device="cpu")  # the bundled Korean-English model; needs no network
items = Items.of_texts([f"{name}: {plot}" for name, plot in FILMS.items()], model, ids=FILMS)

print("Like Cold Orbit:", ", ".join(each.id for each in similar(items, "Cold Orbit", k=3)))
history = ["Cold Orbit", "Silent Witness"]  # the oldest first
for diversity in (0.0, 0.6):
    found = recommend(items, history, ["Dinosaur Camp"], config=RecommendConfig(k=4, diversity=diversity))
    print(f"For both tastes, diversity {diversity}:", ", ".join(f"{each.id} ({each.because})" for each in found))
need = "a love story"
for each in explain(recommend(items, need=need, config=RecommendConfig(k=2, diversity=0.1)), model, need):
    print(f"{need}: {each.id}, for {', '.join(each.keywords)}")
