/** Options of logs. */
import { parseFolder } from '../wanted-models.js';
import { parseChoice, parseSwitch } from '../units.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

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
