/** Limits of clients: sizes of bodies and answers, and how slowly they may be sent and read. */
import { parseBytes, parsePositiveMs, parseSwitch } from '../units.js';
import { DURATION, MIB, SECOND, serverOption, type SomeOptions } from '../option-spec.js';

export const CLIENTS = {
  maxBody: serverOption<number>({
    flag: '--max-body',
    value: '<size>',
    help: 'Largest request body; larger ones get 413 while they arrive.',
    defaultText: '100000000',
    default: 100_000_000,
    parse: parseBytes,
  }),
  maxOutput: serverOption<number>({
    flag: '--max-output',
    value: '<size>',
    help: 'Largest answer that is not a stream; a larger one is a 500.',
    defaultText: '100000000',
    default: 100_000_000,
    parse: (raw) => Math.min(parseBytes(raw), 2 ** 32 - 1),
  }),
  compress: serverOption<boolean>({
    flag: '--compress',
    value: null,
    help: 'Compress answers and pages of text, JSON or XML for clients that accept br or gzip. It takes CPU and may show secrets to observers: see docs/security.md.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  unsentBytes: serverOption<number>({
    flag: '--unsent-bytes',
    value: '<size>',
    help: 'Bytes of answers that clients have not read yet; beyond that the slowest readers are cut off. One answer of --max-output always has room.',
    defaultText: '512mb',
    default: 512 * MIB,
    parse: parseBytes,
  }),
  headerTimeout: serverOption<number>({
    flag: '--header-timeout',
    value: DURATION,
    help: 'Longest time for the request headers to arrive; then 408.',
    defaultText: '20s',
    default: 20 * SECOND,
    parse: parsePositiveMs,
  }),
  bodyTimeout: serverOption<number>({
    flag: '--body-timeout',
    value: DURATION,
    help: 'Longest pause inside a request body; then 408. A body of less than 1 kB/s on average gets 408 too, after 30 s.',
    defaultText: '30s',
    default: 30 * SECOND,
    parse: parsePositiveMs,
  }),
  stallTimeout: serverOption<number>({
    flag: '--stall-timeout',
    value: DURATION,
    help: 'Longest time a client may read nothing of its answer before it is cut off. One that reads at least 1 kB/s on average never is.',
    defaultText: '60s',
    default: 60 * SECOND,
    parse: parsePositiveMs,
  }),
} as const satisfies SomeOptions;
