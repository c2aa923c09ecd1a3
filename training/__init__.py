"""How the course's own language model is made, in three steps: its text, its tokenizer, its weights.

Run ``python -m training`` from the root of the repository; ``python -m training --help`` lists the options.
"""
