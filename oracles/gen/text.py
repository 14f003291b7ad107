"""Writes oracles/fixtures/text_*.jsonl: what TensorFlow's string ops and tables make of random and odd strings.

Run as `python oracles/gen/text.py` in an environment with tensorflow 2.15; text_cases.py explains the cases.
"""

import text_expressions
import text_hash
import text_ops
import text_vocabulary

for part in [text_hash, text_vocabulary, text_ops, text_expressions]:
    part.main()
