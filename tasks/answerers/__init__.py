"""Answerers of questions about overlapping sounds, without weights: baselines for models, and controls from labels.

They know the prompts of `tasks.shapes.asking` and the wordings of `dataset_builder.texts.questions`; a model that
listens and reads on its own belongs to `encoders`.
"""
