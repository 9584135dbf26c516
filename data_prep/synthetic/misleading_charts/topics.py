"""Topics of made-up charts."""

COUNTRIES = ("Arvenia", "Borland", "Cardova", "Dunmark", "Estoria", "Faldora")
COMPANIES = ("Alder", "Birch", "Cedar", "Doum", "Elm", "Fir", "Ginkgo", "Hazel")

WORD_PROBLEMS = (
    ("Bicycles sold", "The bicycles sold in {a} took {k} tonnes of steel. How many tonnes of steel "
     "did the bicycles sold in {b} take?", "tonnes"),
    ("Solar panels installed", "The solar panels installed in {a} supply {k} villages. How many "
     "villages do those installed in {b} supply?", "villages"),
    ("Books printed", "The books printed in {a} filled {k} warehouses. How many warehouses did "
     "the books printed in {b} fill?", "warehouses"),
    ("Olives picked (sacks)", "The olives picked in {a} gave {k} tanks of oil. How many tanks did "
     "the olives picked in {b} give?", "tanks"),
    ("Visitors to the lighthouse", "Serving the visitors of {a} took {k} guides. How many guides "
     "did it take to serve those of {b}?", "guides"),
    ("Parcels delivered", "The parcels delivered in {a} needed {k} vans. How many vans did the "
     "parcels delivered in {b} need?", "vans"),
)  # fmt: skip
"""Title, question and unit; ``{a}`` and ``{b}`` are years, ``{k}`` is what year a comes to."""
TRENDS = ("Snow days", "Ferry passengers", "Bee colonies", "Library loans", "Tram rides")
RIVALS = ("fishing boats", "wind turbines", "railway engines", "beehives")
TRADE_OFFS = (
    ("Delivery robots", "Weight (kg)", "Range (km)"),
    ("Heaters", "Price (coins)", "Noise (dB)"),
    ("Hiking tents", "Thickness (mm)", "Drying time (min)"),
)
"""Title, and two quantities that go together."""
OUTBREAKS = (
    ("Plants with leaf rust", "a new spray came into use"),
    ("Reported phone scams", "a warning campaign began"),
    ("Flats without water", "a pump was replaced"),
)
"""Title, and what happened in between."""
