/** What is logged, how and where to. */
import { parseFolder } from '../wanted-models.js';
import { parseChoice, parseSwitch } from '../units.js';
import { serverOption, type SomeOptions } from '../option-spec.js';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

export const LOGS = {
  accessLog: serverOption<boolean>({
    flag: '--access-log',
    value: null,
    help: 'Log one line per call. Off: failures are logged in any case, and a line per call costs throughput.',
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
    help: "none: the app's own prints as they are; potassium: each line behind [requestID ...], and [worker ...] if there are several. A server of a model store without an app has potassium, and names the model. Of no effect on --log-format json.",
    defaultText: 'none',
    default: 'none',
    parse: (raw) => parseChoice(raw, ['none', 'potassium']),
  }),
  logLevel: serverOption<LogLevel>({
    flag: '--log-level',
    value: '<level>',
    help: "Least level of the server's own log: debug, info, warn, error or silent.",
    defaultText: 'info',
    default: 'info',
    parse: (raw) => parseChoice(raw, LOG_LEVELS),
  }),
  logLocation: serverOption<string | null>({
    flag: '--log-location',
    value: '<folder>',
    help: 'Folder of files that lines go to as well: access_log.log has one for each call, mms_log.log what the server says and its workers print, model_log.log what workers print. LOG_LOCATION in the environment counts too, where there is a model store or a config.properties. See docs/config-properties.md.',
    defaultText: 'no files',
    default: null,
    parse: parseFolder,
  }),
} as const satisfies SomeOptions;
