"""Official checkpoints to model directories (docs/convert.md).

Read in this order: ``formats`` (what a family's file holds, as data), ``source`` (a torch file,
read piece by piece), ``backbones``, ``vocabulary`` and ``shapes`` (what it has to fit),
``plan`` (which tensor goes where, and what is wrong), ``shards`` and ``staging`` (files), and
``conversion``, which does it.
"""
