"""Models that answer questions about sounds that overlap and need no weights: what a model has to be above, and how
far labels go.

They know the prompts of `tasks.question_prompts` and the wordings of `dataset_builder.texts.questions`; a model
that hears and reads by itself belongs to `encoders`.
"""
