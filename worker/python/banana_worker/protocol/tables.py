"""The tables of protocol/ in TypeScript, which `npm run format` prints (test/tools/python-tables.ts)."""

# Numbers of the wire (protocol/wire/).
PROTOCOL_VERSION = 2
DATA_OVERHEAD_BYTES = 64
FIRST_WEBHOOK_REF = 4294967296
MAX_CLOSE_REASON_BYTES = 123
MAX_CONCURRENCY = 128
MAX_FRAGMENT_BYTES = 262144
MAX_HEAD_BYTES = 1048576
MAX_PROGRESS_CHARS = 200
MAX_SCHEMAS_BYTES = 524288
MAX_SCHEMA_BYTES = 262144
MAX_TEXT_CHARS = 65536
MAX_WEBHOOK_BYTES = 16777216
MAX_WEBHOOK_RETRIES = 10
MAX_WEBHOOK_TIMEOUT_MS = 60000
FRAME_PREFIX_BYTES = 8
BEGUN_NOTE_BYTES = 16

# Messages of the errors of a worker (protocol/errors.ts). Safe for a client: no secret, path or traceback is in them.
MESSAGES = {
    "SERVE_BAD_BODY": "The request body could not be read.",
    "SERVE_INFERENCE_FAILED": "The model failed on this call.",
    "SERVE_HTTP_ERROR": "The app refused this call.",
    "SERVE_INPUT_INVALID": "The input does not fit its schema.",
    "SERVE_OUTPUT_INVALID": "The model's output could not be encoded.",
    "SERVE_OUTPUT_TOO_LARGE": "The model's output is larger than allowed.",
    "SERVE_CANCELLED": "The client disconnected.",
    "SERVE_WORKER_LOST": "The worker died while running this call.",
    "SERVE_PROTOCOL": "A worker broke the protocol.",
    "SERVE_INTERNAL": "The server failed on this request.",
    "SERVE_APP_INVALID": "The app cannot be loaded.",
    "SERVE_INIT_FAILED": "The app's init failed.",
}

# Codes with which a call ends; the front takes any other for the failure of the model.
CALL_ERRORS = (
    "SERVE_BAD_BODY",
    "SERVE_INFERENCE_FAILED",
    "SERVE_HTTP_ERROR",
    "SERVE_INPUT_INVALID",
    "SERVE_OUTPUT_INVALID",
    "SERVE_OUTPUT_TOO_LARGE",
    "SERVE_CANCELLED",
)

# Options that a model may set for itself (supervisor/options/table.ts).
MODEL_OPTIONS = (
    "initTimeout",
    "restartLimit",
    "queueSize",
    "queueTimeout",
    "rawItems",
    "batchSize",
    "maxBatchDelay",
    "runTimeout",
    "websocketIdleTimeout",
)

# The tasks of models, by which clients call them (protocol/wire/messages.ts).
TASKS = ("embedding", "rerank")

# Paths that the front answers by itself (protocol/reserved-paths.ts).
HEALTH_PATHS = ("/healthcheck", "/livez", "/readyz")
POTASSIUM_STATUS_PATHS = ("/_k/status", "/__status__")
WARM_UP_PATH = "/_k/warmup"
RESERVED_PATHS = ("/healthcheck", "/livez", "/readyz", "/status", "/_k/status", "/__status__", "/_k")
RESERVED_PREFIXES = ("/readyz/", "/_k/")
