/** Options of calls: waiting, running, batching. */
import { parseBytes, parseDurationMs, parsePositiveMs, parseSwitch, parseWhole } from '../units.js';
import {
  DURATION,
  MIB,
  MINUTE,
  modelOption,
  operatorOption,
  serverOption,
  type SomeOptions,
} from '../option-spec.js';
import { MAX_CONCURRENCY } from '../../../protocol/wire/messages.js';

export const CALLS = {
  queueSize: modelOption<number>({
    flag: '--queue-size',
    value: '<n>',
    help: 'Calls that may wait for a worker; more are refused with 503. 0 refuses whenever every worker is busy.',
    defaultText: '1024',
    default: 1024,
    parse: (raw) => parseWhole(raw, 0, 1_000_000),
  }),
  queueBytes: serverOption<number>({
    flag: '--queue-bytes',
    value: '<size>',
    help: 'Bytes of request bodies that wait or arrive, for all models together, counted as they arrive; beyond that, requests are refused with 503, the slowest first.',
    defaultText: '512mb',
    default: 512 * MIB,
    parse: parseBytes,
  }),
  queueTimeout: modelOption<number>({
    flag: '--queue-timeout',
    value: DURATION,
    help: 'Longest wait for a worker before 504.',
    defaultText: '5m',
    default: 5 * MINUTE,
    parse: parsePositiveMs,
  }),
  rawItems: modelOption<boolean>({
    flag: '--raw-items',
    value: null,
    help: 'Custom services get bodies and fields as bytes, whatever their content type. Off: JSON is read, and text is text.',
    defaultText: 'off',
    default: false,
    parse: parseSwitch,
  }),
  batchSize: modelOption<number>({
    flag: '--batch-size',
    value: '<n>',
    help: 'Most calls in one batch, for apps that take batches. 1: every call runs by itself. See docs/batching.md.',
    defaultText: '1',
    default: 1,
    parse: (raw) => parseWhole(raw, 1, 1024),
  }),
  maxBatchDelay: modelOption<number>({
    flag: '--max-batch-delay',
    value: DURATION,
    help: 'Longest time that a call waits for others to fill its batch while a worker is idle. 0: an idle worker takes the waiting calls at once.',
    defaultText: '0',
    default: 0,
    parse: parseDurationMs,
  }),
  concurrency: operatorOption<number | null>({
    flag: '--concurrency',
    value: '<n>',
    help: `Most calls that run at the same time in one worker, for apps whose config sets concurrency (at most ${MAX_CONCURRENCY}). 1: one after the other. See docs/batching.md.`,
    defaultText: 'what the app sets',
    default: null,
    parse: (raw) => parseWhole(raw, 1, MAX_CONCURRENCY),
  }),
  runTimeout: modelOption<number>({
    flag: '--run-timeout',
    value: DURATION,
    help: 'Longest run of one call: then the abort signal, a grace of 1s, SIGKILL; the caller gets 504.',
    defaultText: '5m',
    default: 5 * MINUTE,
    parse: parsePositiveMs,
  }),
  websocketIdleTimeout: modelOption<number>({
    flag: '--websocket-idle-timeout',
    value: DURATION,
    help: 'Longest time without a message in either direction on a WebSocket whose app waits for its client; then it is closed. An open WebSocket occupies a worker.',
    defaultText: '1m',
    default: MINUTE,
    parse: parsePositiveMs,
  }),
} as const satisfies SomeOptions;
