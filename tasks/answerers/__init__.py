"""Answerers of questions about overlapping sounds, without weights: bars for models, and the reach of labels.

They know the prompts of `tasks.shapes.asking` and the wordings of `dataset_builder.texts.questions`; a model that
listens and reads by itself belongs to `encoders`.
"""
