"""Which requests run where and when: guided ones as atomic pairs of rows, in all of it two rows.

In an engine: ``policy`` and ``ledger``, the ``scheduler`` that applies them, its ``prefix_cache``
and ``step_times``. Before an engine sees a request: ``routing``, ``admission`` and
``autoscaling``.
"""
