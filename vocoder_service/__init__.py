"""From frames of codec ids to PCM: codecs, streaming windows, batched decoding, the Ray actor.

Read in this order: ``frames`` (what a codec looks like from outside), ``receptive_field`` (how
much context its decoder needs), ``codec`` (the codecs whose decoder hears its context and nothing
else), ``stages`` and ``staged`` (those whose decoder remembers), ``windows`` (how a stream is cut),
``vocoder`` and ``recall`` (how windows of many streams are decoded together), ``service`` (how live
streams share a vocoder) and ``actor`` (the service as a Ray actor).
"""
