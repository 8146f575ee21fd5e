"""From frames of codec ids to PCM: codecs, streaming windows, batched decoding, the Ray actor.

Read in this order: ``frames`` (what a codec looks like from outside), ``receptive_field`` (how many
frames its decoder must see), ``streaming`` (decoders that read a stream piece by piece),
``decoder`` and ``codec`` (the codecs, made of these), ``windows`` (how a stream is cut), ``kept``
(what is remembered of it meanwhile), ``vocoder`` (how windows of many streams are decoded
together), ``service`` (how live streams share a vocoder) and ``actor`` (the service as a Ray
actor). ``schedule`` is for who pushes frames: how large windows had best be.
"""
