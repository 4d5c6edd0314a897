/** Options of a server that runs: its stop, development, logs and metrics. */
import {
  DURATION,
  FOLDER,
  HOST,
  PORT,
  POSITIVE_DURATION,
  SWITCH,
  choice,
  serverOption,
  type SomeOptions,
} from '../option-spec.js';

export const STOPPING = {
  drainTimeout: serverOption({
    ...DURATION,
    default: '25s',
    help: "Longest time for a stop. Below Kubernetes' 30s; docker stop waits only 10s by default (use docker stop -t 30).",
  }),
  drainLag: serverOption({
    ...DURATION,
    default: '2s',
    help: 'Time after SIGTERM in which calls are still accepted, while load balancers notice that /readyz answers 503. Ctrl-C: 0.',
  }),
} as const satisfies SomeOptions;

export const DEVELOPMENT = {
  exposeErrors: serverOption({
    ...SWITCH,
    help: "Answer with the stack, as text, when the app throws: for development. Off: a stack shows your code, and may contain a caller's data.",
  }),
  watch: serverOption({
    ...SWITCH,
    help: "Start the workers again, init included, whenever a code or JSON file in the app's folder changes: for development.",
  }),
} as const satisfies SomeOptions;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export const LOGS = {
  accessLog: serverOption({
    ...SWITCH,
    help: 'Log one line per call. Off: only failures are logged.',
  }),
  logFormat: serverOption({
    ...choice('<format>', ['text', 'json']),
    default: 'text',
    help: "text for people; json for machines: the app's own prints are wrapped too, with worker and request id.",
  }),
  logPrefix: serverOption({
    ...choice('<style>', ['none', 'potassium']),
    default: 'none',
    help: "none: the app's prints unchanged; potassium: each line after [requestID ...], and [worker ...] if there are several workers. The default is potassium, with the model's name, on a server of a model store without an app. No effect with --log-format json.",
  }),
  logLevel: serverOption({
    ...choice('<level>', LOG_LEVELS),
    default: 'info',
    help: "Lowest level of the server's own log: debug, info, warn, error or silent.",
  }),
  logLocation: serverOption({
    ...FOLDER,
    unset: 'no files',
    help: 'Folder of log files, written in addition: access_log.log has a line for each call, mms_log.log the lines of the server and its workers, model_log.log those of workers only. LOG_LOCATION in the environment counts too, where there is a model store or a config.properties. See docs/config-properties.md.',
  }),
} as const satisfies SomeOptions;

export const METRICS = {
  metrics: serverOption({
    ...SWITCH,
    help: 'Answer GET /metrics on the port of the server, in the text format of Prometheus, with the same key as /status. See docs/metrics.md.',
  }),
  metricsPort: serverOption({
    ...PORT,
    unset: 'off',
    help: 'TCP port of a listener for GET /metrics alone, which asks for no key; 0 for a free one, or the path of a unix socket (anything with a /).',
  }),
  metricsHost: serverOption({
    ...HOST,
    default: '127.0.0.1',
    help: 'Address of that listener. Anyone who reaches it learns the names of models and how busy they are.',
  }),
  metricsMode: serverOption({
    ...choice('<mode>', ['log', 'prometheus', 'legacy']),
    unset: 'log without an app, else neither',
    help: "Multi Model Server's own metrics: log writes its lines to the log, prometheus adds TorchServe's names to GET /metrics, legacy writes the lines and adds TorchServe's three counters of calls.",
  }),
  metricInterval: serverOption({
    ...POSITIVE_DURATION,
    default: '60s',
    help: "Interval at which these report the machine's CPU, memory and disk.",
  }),
  metricsLocation: serverOption({
    ...FOLDER,
    unset: 'no files',
    help: 'Folder of files for the lines of --metrics-mode log, written in addition: mms_metrics.log has those of the server, model_metrics.log those of custom services. METRICS_LOCATION in the environment counts too, where there is a model store or a config.properties.',
  }),
} as const satisfies SomeOptions;
