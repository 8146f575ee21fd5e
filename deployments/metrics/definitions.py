"""Every metric of the service: name, unit, meaning, labels, source, formula, buckets. Data only.

The service, the benchmark, the tests of dashboards and alerts, and docs/metrics.md are made from
this list. Ray puts ``ray_`` before each name, and Serve adds the labels of ``SERVE_LABELS``.
"""

from __future__ import annotations

from cfg_pairing.step_times import BOUNDS
from deployments.metrics.kinds import Counter, Gauge, Histogram, Metric

# 10 ms to a minute: times that somebody waits for.
WAITS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)
# Half a millisecond to a second: what is done many times a second. The engine counts by them.
STEPS = BOUNDS
LENGTHS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
# 1 is real time.
FACTORS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 4.0)
# 50, 100 and 200 ms are the bounds of C50, C100 and C200; the first bucket stands for never.
STANDSTILLS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

REQUEST_LABELS = ("endpoint", "model")
ANSWER_LABELS = ("model", "task", "guided")

REQUESTS = Counter(
    "speechlm_requests_total",
    "count",
    "Requests that have ended.",
    ("endpoint", "model", "status", "finish_reason", "guided"),
    "front end",
    formula="status: of HTTP, 101 for a WebSocket, none if the client left before there was one. "
    "finish_reason: stop, length; cancelled (the client left), deadline, failed (the answer is "
    "not whole); none for what generates nothing, and for refusals",
)
REQUEST_SECONDS = Histogram(
    "speechlm_request_seconds",
    "seconds",
    "From the arrival of a request to the end of its answer.",
    REQUEST_LABELS,
    "front end",
    buckets=WAITS,
)
QUEUE_SECONDS = Histogram(
    "speechlm_queue_seconds",
    "seconds",
    "From the arrival of a request until an engine replica has accepted it.",
    (*REQUEST_LABELS, "priority"),
    "front end",
    formula="priority: the class of the request (docs/scaling.md)",
    buckets=WAITS,
)
TIME_TO_FIRST_AUDIO = Histogram(
    "speechlm_time_to_first_audio_seconds",
    "seconds",
    "TTFA: from the arrival of a request to the first audio for its client.",
    (*REQUEST_LABELS, "guided", "priority"),
    "front end",
    formula="over a WebSocket, from the moment a text is to be spoken while nothing is",
    buckets=WAITS,
)
CANCELLED = Counter(
    "speechlm_cancelled_requests_total",
    "count",
    "Requests whose client left before the end.",
    ("endpoint", "model", "phase"),
    "front end",
    formula="phase: waiting (no engine had accepted it), silent (no audio yet), audio",
)
REFUSED = Counter(
    "speechlm_refused_requests_total",
    "count",
    "Requests that were refused with 429 or 503.",
    ("endpoint", "model", "reason"),
    "front end",
    formula="reason: the code of the error: a limit's name (docs/guards.md), rate_limit_exceeded "
    "(replicas are full), overloaded, engine_unavailable, limiter_unavailable, store_unavailable, "
    "out_of_memory, draining",
)
AUDIT_LOST = Counter(
    "speechlm_audit_records_lost_total",
    "count",
    "Requests that the audit log lacks.",
    ("reason",),
    "front end",
    formula="reason: behind (too many records waited for the disk) or disk (it took none)",
    needs="audit log",
)
TIME_TO_FIRST_TOKEN = Histogram(
    "speechlm_time_to_first_token_seconds",
    "seconds",
    "TTFT: from the acceptance of a request by a replica to the first row of the engine.",
    ANSWER_LABELS,
    "replica",
    buckets=WAITS,
)
TIME_PER_OUTPUT_FRAME = Histogram(
    "speechlm_time_per_output_frame_seconds",
    "seconds",
    "TPOT: time per row after the first, of one utterance or answer.",
    ANSWER_LABELS,
    "replica",
    formula="(last row - first row) / (rows - those that came with the first)",
    buckets=STEPS,
)
REAL_TIME_FACTOR = Histogram(
    "speechlm_real_time_factor",
    "ratio",
    "RTF: time to make the audio of a request over its duration; below 1 is faster than it plays.",
    ANSWER_LABELS,
    "replica",
    formula="(last audio - acceptance) / duration of all audio",
    buckets=FACTORS,
)
AUDIO_GAP_SECONDS = Histogram(
    "speechlm_audio_gap_seconds",
    "seconds",
    "Time between two pieces of audio of a request.",
    ANSWER_LABELS,
    "replica",
    buckets=WAITS,
)
UNDERRUN_SECONDS = Histogram(
    "speechlm_underrun_seconds",
    "seconds",
    "How long a player that begins with the first piece would stand still at most, per request.",
    ANSWER_LABELS,
    "replica",
    formula="max over pieces of (arrival - first arrival - audio before it), at least 0. "
    "C50, C100, C200: the shares below 0.05, 0.1, 0.2",
    buckets=STANDSTILLS,
)
AUDIO_SECONDS = Counter(
    "speechlm_audio_seconds_total",
    "seconds",
    "Audio that was made.",
    ANSWER_LABELS,
    "replica",
)
AUDIO_LENGTH = Histogram(
    "speechlm_audio_length_seconds",
    "seconds",
    "Duration of the audio of a request.",
    ANSWER_LABELS,
    "replica",
    buckets=LENGTHS,
)
REPLICA_REQUESTS = Gauge(
    "speechlm_replica_requests",
    "count",
    "Requests that a replica is serving.",
    ("model",),
    "replica",
)
REPLICA_CAPACITY = Gauge(
    "speechlm_replica_capacity",
    "count",
    "Requests that a replica takes at a time.",
    ("model",),
    "replica",
)
ADMISSION_WAITING = Gauge(
    "speechlm_admission_waiting",
    "count",
    "Requests that wait in a replica's queue for rows (docs/scaling.md).",
    ("model", "priority"),
    "replica",
)
AUDIO_OWED = Gauge(
    "speechlm_audio_owed_seconds",
    "seconds",
    "Audio that the requests of a replica, waiting ones included, are still to get; an estimate "
    "by the length of their texts.",
    ("model",),
    "replica",
)
REPLICA_HEALTHY = Gauge(
    "speechlm_replica_healthy",
    "count",
    "1 while engine and vocoder of a replica answer, otherwise 0; gone with the replica.",
    ("model",),
    "replica",
)
OUT_OF_MEMORY = Counter(
    "speechlm_out_of_memory_events_total",
    "count",
    "Requests that failed for want of memory.",
    ("model", "part"),
    "replica",
    formula="part: vocoder or encoder. An engine takes its memory when it starts",
    starts=tuple((("part", part),) for part in ("vocoder", "encoder")),
)
ROWS_RUNNING = Gauge(
    "speechlm_rows_running",
    "count",
    "Rows in the batch; a guided request has two in audio.",
    ("model",),
    "engine",
)
ROWS_WAITING = Gauge(
    "speechlm_rows_waiting",
    "count",
    "Rows that wait for a place in the batch.",
    ("model",),
    "engine",
)
ROWS_CAPACITY = Gauge(
    "speechlm_rows_capacity", "count", "Rows that a batch can have.", ("model",), "engine"
)
KV_BLOCKS_USED = Gauge(
    "speechlm_kv_blocks_used",
    "count",
    "Blocks of the KV cache that are in use.",
    ("model",),
    "engine",
)
KV_BLOCKS_CAPACITY = Gauge(
    "speechlm_kv_blocks_capacity", "count", "Blocks of the KV cache.", ("model",), "engine"
)
PREEMPTIONS = Counter(
    "speechlm_preemptions_total",
    "count",
    "Times that a request had to give its rows and blocks back.",
    ("model",),
    "engine",
    starts=((),),
)
PAIRS = Counter(
    "speechlm_pairs_total",
    "count",
    "Guided requests, by what has happened to them.",
    ("model", "event"),
    "engine",
    formula="event: admitted, joined, preempted, resumed, finished, aborted or failed",
    starts=tuple(
        (("event", event),)
        for event in (
            "admitted",
            "joined",
            "preempted",
            "resumed",
            "finished",
            "aborted",
            "failed",
        )
    ),
)
PAIR_ROWS_SPLIT = Gauge(
    "speechlm_pair_rows_split",
    "count",
    "Pairs that were scheduled with one row missing, since the engine started. Must be 0.",
    ("model",),
    "engine",
)
UNGUIDED_FRAMES = Gauge(
    "speechlm_unguided_frames",
    "count",
    "Frames of guided requests that were sampled without guidance, since the engine started. "
    "Must be 0.",
    ("model",),
    "engine",
)
ENGINE_REQUESTS = Counter(
    "speechlm_engine_requests_total",
    "count",
    "Utterances and answers that the engine has ended.",
    ("model", "outcome"),
    "engine",
    formula="outcome: finished, aborted (not wanted any more) or failed",
    starts=tuple((("outcome", outcome),) for outcome in ("finished", "aborted", "failed")),
)
STEP_SECONDS = Histogram(
    "speechlm_engine_step_seconds",
    "seconds",
    "Duration of an engine step: scheduling, forward pass, sampling.",
    ("model",),
    "engine",
    buckets=STEPS,
)
STEP_TOKENS = Counter(
    "speechlm_engine_tokens_total",
    "count",
    "Rows that the engine's steps have computed, those of prompts and of guidance included.",
    ("model",),
    "engine",
    formula="over speechlm_engine_step_seconds_count, the rows of a step",
    starts=((),),
)
FRAMES = Counter(
    "speechlm_frames_total",
    "count",
    "Frames that the engine has sampled; a pair's counts once.",
    ("model",),
    "engine",
    starts=((),),
)
VOCODER_WINDOWS = Counter(
    "speechlm_vocoder_windows_total",
    "count",
    "Windows that the vocoder has decoded.",
    ("model",),
    "vocoder",
    starts=((),),
)
VOCODER_BATCHES = Counter(
    "speechlm_vocoder_batches_total",
    "count",
    "Batches that the vocoder has decoded.",
    ("model",),
    "vocoder",
    formula="windows over batches: the mean batch size",
    starts=((),),
)
VOCODER_SECONDS = Counter(
    "speechlm_vocoder_decode_seconds_total",
    "seconds",
    "Time that the vocoder has decoded.",
    ("model",),
    "vocoder",
    starts=((),),
)
VOCODER_WAIT_SECONDS = Histogram(
    "speechlm_vocoder_wait_seconds",
    "seconds",
    "From handing frames to the vocoder until their audio is there: queue and decoding.",
    ("model",),
    "replica",
    buckets=STEPS,
)
VOCODER_QUEUE = Gauge(
    "speechlm_vocoder_queue", "count", "Windows that wait to be decoded.", ("model",), "vocoder"
)
VOCODER_STREAMS = Gauge(
    "speechlm_vocoder_streams",
    "count",
    "Streams that the vocoder remembers.",
    ("model",),
    "vocoder",
)
VOCODER_BUSY = Gauge(
    "speechlm_vocoder_busy_ratio",
    "ratio",
    "Share of the last seconds that the vocoder was decoding.",
    ("model",),
    "vocoder",
)
ENCODE_SECONDS = Histogram(
    "speechlm_encode_seconds",
    "seconds",
    "From handing a clip to the encoder until its codes are there: queue and encoding.",
    ("model",),
    "replica",
    needs="audio input",
    buckets=WAITS,
)
ENCODED_AUDIO = Counter(
    "speechlm_encoded_audio_seconds_total",
    "seconds",
    "Audio from clients that was encoded.",
    ("model",),
    "replica",
    needs="audio input",
)
ENCODER_WAITING = Gauge(
    "speechlm_encoder_waiting",
    "count",
    "Clips that wait for the encoder or are in it.",
    ("model",),
    "replica",
)
GPU_MEMORY = Gauge(
    "speechlm_gpu_memory_bytes",
    "bytes",
    "GPU memory that PyTorch holds.",
    ("model", "part"),
    "replica",
    formula="part: engine or vocoder",
    needs="gpu",
)
GPU_DEVICE_MEMORY = Gauge(
    "speechlm_gpu_device_memory_bytes",
    "bytes",
    "Memory of the replica's GPU.",
    ("model", "state"),
    "replica",
    formula="state: used (by whomever) or capacity",
    needs="gpu",
)
BUILD_INFO = Gauge(
    "speechlm_build_info",
    "info",
    "1; the labels say what runs.",
    ("version", "vllm", "ray", "torch"),
    "replica",
)

DEFINITIONS: tuple[Metric, ...] = tuple(
    value for value in list(vars().values()) if isinstance(value, Metric)
)
