"""Multiple-choice questions about sounds that overlap (arXiv 2603.05128), from strong labels alone.

`kinds` say what may be asked of a recording, and how answers and options are chosen so that nothing but the sound gives
them away; `check` comes to each answer by another way.
"""
