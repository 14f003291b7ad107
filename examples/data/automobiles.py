"""Writes automobiles.csv: made-up cars with some columns of the UCI data set imports-85.

price = level of the make * (4 * curb-weight - 60 * highway-mpg + extra of the body style) + noise
highway-mpg = 62 - curb-weight / 80 + noise

The file has no header, and every 50th price is missing, written as `?`. Usage: python automobiles.py > automobiles.csv
"""

import random

LEVEL = {
    "audi": 1.5, "bmw": 1.9, "chevrolet": 0.8, "dodge": 0.85, "honda": 1.0, "jaguar": 2.3, "mazda": 0.95,
    "mercedes-benz": 2.2, "mitsubishi": 0.9, "nissan": 0.95, "peugot": 1.3, "porsche": 2.4, "saab": 1.4,
    "subaru": 0.9, "toyota": 0.95, "volkswagen": 1.1, "volvo": 1.5,
}
EXTRA = {"convertible": 3000, "hardtop": 1200, "hatchback": 0, "sedan": 500, "wagon": 800}

random.seed(85)
for i in range(600):
    make, style = random.choice(list(LEVEL)), random.choice(list(EXTRA))
    weight = random.randrange(1500, 4000)
    mpg = round(62 - weight / 80 + random.uniform(-3, 3))
    price = LEVEL[make] * (4 * weight - 60 * mpg + EXTRA[style]) + random.gauss(0, 400)
    print(make, style, weight, mpg, "?" if i % 50 == 49 else round(price), sep=",")
