/** Options of metrics. */
import { parseHost, parsePort } from '../address.js';
import { parseFolder } from '../wanted-models.js';
import { parseChoice, parsePositiveMs, parseSwitch } from '../units.js';
import { DURATION, SECOND, serverOption, type SomeOptions } from '../option-spec.js';

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
