/** Options of calls (waiting, running, batching), of jobs, of the limits of clients, and of webhooks. */
import { parseBytes, parseDurationMs, parsePositiveMs, parseSwitch, parseWhole } from '../units.js';
import {
  DURATION,
  MIB,
  MINUTE,
  modelOption,
  operatorOption,
  serverOption,
  type SomeOptions,
  SECOND,
} from '../option-spec.js';
import { MAX_CONCURRENCY } from '../../../protocol/wire/messages.js';
import { IN_MEMORY, parseJobsPlace, type JobsPlace } from '../value-forms.js';
import { type WebhookSigner, parseWebhookSecrets } from '../webhook-signer.js';

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

export const JOBS = {
  jobs: serverOption<JobsPlace>({
    flag: '--jobs',
    value: '<store>',
    help: 'Where jobs are kept: memory loses them with the process; local keeps them in the folder .banana-jobs, local:<folder> in another, which one server at a time may use; redis://… (or rediss://…) keeps them in a Redis that many servers share. See docs/jobs.md.',
    defaultText: 'memory',
    default: IN_MEMORY,
    secret: true, // may have a password
    parse: parseJobsPlace,
  }),
  jobRetention: serverOption<number | null>({
    flag: '--job-retention',
    value: DURATION,
    help: 'Time that an ended job is kept with its result, if there is room.',
    defaultText: '24h; in memory 15m',
    default: null,
    parse: parsePositiveMs,
  }),
  jobBytes: serverOption<number | null>({
    flag: '--job-bytes',
    value: '<size>',
    help: 'Bytes of the bodies and results of jobs, 1 KiB a job at least. When they run short, ended jobs are dropped, the oldest first; then new jobs are refused with 503, and results are dropped.',
    defaultText: '1gb; in memory 256mb',
    default: null,
    parse: parseBytes,
  }),
} as const satisfies SomeOptions;

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

export const WEBHOOKS = {
  webhookSecret: serverOption<WebhookSigner | null>({
    flag: '--webhook-secret',
    value: '<secret>',
    help: 'Secret that signs webhooks (Standard Webhooks): whsec_ followed by base64; each of several, separated by spaces or commas, signs. Prefer the environment.',
    defaultText: 'not signed',
    default: null,
    secret: true,
    parse: parseWebhookSecrets,
  }),
} as const satisfies SomeOptions;
