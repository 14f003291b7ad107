"""Writes oracles/fixtures/hparams.jsonl: what the original HParams makes of texts and dictionaries.

TensorFlow 2.15 has no HParams any more; tensor2tensor 1.15.7 carries its last version.  No randomness.
Run: pip install --no-deps tensor2tensor==1.15.7 && python oracles/gen/hparams.py
The case `initial` has the values before; the cases `text` and `dict` those after, or an `error`.
"""

import importlib.metadata

from tensor2tensor.utils import hparam

from fixture import Fixture

VALUES = {
    "rate": 0.5, "steps": 10, "name": "a", "on": False, "scope.inner": 1,
    "sizes": [1, 2, 3], "rates": [0.5, 1.5], "flags": [True, False], "words": ["x", "y"],
}
TEXTS = [
    "rate=1,steps=-3,name=a b=c,on=True,sizes=[4],rates=[1 2.5],flags=[0,7],words=[p q,r],scope.inner=2",
    "", "steps = 7", "steps=7 , rate=1e-3", "rate= 1e-3 ,", "steps=1,", "steps=+5", "rate=1e3", "rate=-.5", "rate=5.",
    "name= x ", "name=  ,steps=1", "name=", "name=true", "name='q'", "name=a.b/c:d", "words=[a,'b c']", "words=[]",
    "sizes=[]", "sizes=[1,,2]", "sizes=[ 1 , 2 ]", "rates=[1]", "flags=[true,False,1,0]",
    "on=true", "on=false", "on=False", "on=2", "on=0", "on=-1",
    # Refused.
    "steps=1.5", "steps=1.0", "steps=1e3", "steps=", "steps=true", "steps=0x10", "rate=fast", "rate=", "on=yes", "on=TRUE", "on=1.0", "on=",
    "steps=[1]", "name=[a]", "sizes=1", "sizes=[1,x]", "sizes=[1.5]", "flags=[yes]", "sizes[0]=[1]", "steps[0]=1",
    "steps=1,steps=2", "steps=1,rate=2,steps=1", "sizes=[1],sizes[0]=2", "sizes[0]=2,sizes=[1]", "sizes[0]=2,sizes[0]=2",
    "stepz=1", "step=1", "Steps=1", "scope=1",
    "steps", "steps=1,=2", "1steps=1", "_x=1", "sizes=[1,2", "sizes=1]", "sizes[x]=1", "sizes[-1]=1", "sizes[]=1", "sizes=[1]2",
    "sizes=[[1]]", "name=a[0]", "name=x,,steps=1", ",", "=", "steps==1", "steps=1;rate=2",
]
DICTS = [
    {"rate": 2}, {"rate": 2.5, "steps": -1}, {"rates": [1, 2]}, {"rates": [1, 2.5]}, {"name": ""}, {"words": ["a b", ""]}, {"flags": [True]},
    # Refused.
    {"name": 1}, {"name": True}, {"on": 1}, {"on": "true"}, {"steps": 2.0}, {"steps": True}, {"steps": "1"}, {"rate": "1"}, {"rate": True},
    {"sizes": [1.5]}, {"sizes": [True]}, {"sizes": 1}, {"words": "x"}, {"words": [1]}, {"steps": [1]}, {"nothing": 1},
]


def outcome(change, argument):
    params = hparam.HParams(**VALUES)
    try:
        change(params, argument)
    except (ValueError, KeyError) as error:
        return {"error": type(error).__name__}
    return {"values": {name: getattr(params, name) for name in VALUES}}


if __name__ == "__main__":
    fixture = Fixture()
    fixture.case("initial", values=VALUES)
    for text in TEXTS:
        fixture.case("text", text=text, **outcome(hparam.HParams.parse, text))
    for values in DICTS:
        fixture.case("dict", dict=values, **outcome(hparam.HParams.override_from_dict, values))
    fixture.write("hparams", tensor2tensor=importlib.metadata.version("tensor2tensor"))
