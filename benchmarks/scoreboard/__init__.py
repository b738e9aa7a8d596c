"""One table of every headline figure, and what got better or worse since the last run that was kept.

``figures`` says what a figure is and how two of them compare, ``rows`` lists the groups of figures (``accuracy`` and
``cost`` measure them), ``history`` keeps runs in ``runs.json``, and ``table`` prints.
"""
