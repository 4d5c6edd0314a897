/** Options of a server that runs: its stop, development, logs and metrics. */
import { parseDurationMs, parseSwitch, parseChoice, parsePositiveMs } from '../units.js';
import { DURATION, SECOND, serverOption, type SomeOptions } from '../option-spec.js';
import { parseFolder } from '../value-forms.js';
import { parseHost, parsePort } from '../address.js';

export const STOPPING = {
  drainTimeout: serverOption<number>({
    flag: '--drain-timeout',
    value: DURATION,
    help: "Longest time for a stop. Below Kubernetes' 30s; docker stop waits only 10s by default (use docker stop -t 30).",
    defaultText: '25s',
    default: 25 * SECOND,
    parse: parseDurationMs,
  }),
  drainLag: serverOption<number>({
    flag: '--drain-lag',
    value: DURATION,
    help: 'Time after SIGTERM in which calls are still accepted, while load balancers notice that /readyz answers 503. Ctrl-C: 0.',
    defaultText: '2s',
    default: 2 * SECOND,
    parse: parseDurationMs,
  }),
} as const satisfies SomeOptions;

export const DEVELOPMENT = {
  exposeErrors: serverOption<boolean>({
    flag: '--expose-errors',
    value: null,
    help: "Answer with the stack, as text, when the app throws: for development. Off: a stack shows your code, and may contain a caller's data.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  watch: serverOption<boolean>({
    flag: '--watch',
    value: null,
    help: "Start the workers again, init included, whenever a code or JSON file in the app's folder changes: for development.",
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
} as const satisfies SomeOptions;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export const LOGS = {
  accessLog: serverOption<boolean>({
    flag: '--access-log',
    value: null,
    help: 'Log one line per call. Off: only failures are logged.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  logFormat: serverOption<'text' | 'json'>({
    flag: '--log-format',
    value: '<format>',
    help: "text for people; json for machines: the app's own prints are wrapped too, with worker and request id.",
    defaultText: 'text',
    default: 'text',
    parse: (raw) => parseChoice(raw, ['text', 'json']),
  }),
  logPrefix: serverOption<'none' | 'potassium'>({
    flag: '--log-prefix',
    value: '<style>',
    help: "none: the app's prints unchanged; potassium: each line after [requestID ...], and [worker ...] if there are several workers. The default is potassium, with the model's name, on a server of a model store without an app. No effect with --log-format json.",
    defaultText: 'none',
    default: 'none',
    parse: (raw) => parseChoice(raw, ['none', 'potassium']),
  }),
  logLevel: serverOption<LogLevel>({
    flag: '--log-level',
    value: '<level>',
    help: "Lowest level of the server's own log: debug, info, warn, error or silent.",
    defaultText: 'info',
    default: 'info',
    parse: (raw) => parseChoice(raw, LOG_LEVELS),
  }),
  logLocation: serverOption<string | null>({
    flag: '--log-location',
    value: '<folder>',
    help: 'Folder of log files, written in addition: access_log.log has a line for each call, mms_log.log the lines of the server and its workers, model_log.log those of workers only. LOG_LOCATION in the environment counts too, where there is a model store or a config.properties. See docs/config-properties.md.',
    defaultText: 'no files',
    default: null,
    parse: parseFolder,
  }),
} as const satisfies SomeOptions;

export type MetricsMode = 'log' | 'prometheus' | 'legacy';
const METRICS_MODES: readonly MetricsMode[] = ['log', 'prometheus', 'legacy'];

export const METRICS = {
  metrics: serverOption<boolean>({
    flag: '--metrics',
    value: null,
    help: 'Answer GET /metrics on the port of the server, in the text format of Prometheus, with the same key as /status. See docs/metrics.md.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  metricsPort: serverOption<number | string | null>({
    flag: '--metrics-port',
    value: '<port>',
    help: 'TCP port of a listener for GET /metrics alone, which asks for no key; 0 for a free one, or the path of a unix socket (anything with a /).',
    defaultText: 'off',
    default: null,
    parse: parsePort,
  }),
  metricsHost: serverOption<string>({
    flag: '--metrics-host',
    value: '<address>',
    help: 'Address of that listener. Anyone who reaches it learns the names of models and how busy they are.',
    defaultText: '127.0.0.1',
    default: '127.0.0.1',
    parse: parseHost,
  }),
  metricsMode: serverOption<MetricsMode | null>({
    flag: '--metrics-mode',
    value: '<mode>',
    help: "Multi Model Server's own metrics: log writes its lines to the log, prometheus adds TorchServe's names to GET /metrics, legacy writes the lines and adds TorchServe's three counters of calls.",
    defaultText: 'log without an app, else neither',
    default: null,
    parse: (raw) => parseChoice(raw, METRICS_MODES),
  }),
  metricInterval: serverOption<number>({
    flag: '--metric-interval',
    value: DURATION,
    help: "Interval at which these report the machine's CPU, memory and disk.",
    defaultText: '60s',
    default: 60 * SECOND,
    parse: parsePositiveMs,
  }),
  metricsLocation: serverOption<string | null>({
    flag: '--metrics-location',
    value: '<folder>',
    help: 'Folder of files for the lines of --metrics-mode log, written in addition: mms_metrics.log has those of the server, model_metrics.log those of custom services. METRICS_LOCATION in the environment counts too, where there is a model store or a config.properties.',
    defaultText: 'no files',
    default: null,
    parse: parseFolder,
  }),
} as const satisfies SomeOptions;
