"""Multiple-choice questions about sounds that overlap (arXiv 2603.05128), from strong labels alone.

A file a task: what it may ask of a recording, and how answers and options are chosen so that nothing but the sound
gives them away. Nothing here reads or makes sound; `check` comes to each answer by another way.
"""
