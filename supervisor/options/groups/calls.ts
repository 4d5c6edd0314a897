/** Options of calls (waiting, running, batching), of jobs, of the limits of clients, and of webhooks. */
import { MAX_CONCURRENCY } from '../../../protocol/wire/messages.js';
import {
  DURATION,
  POSITIVE_DURATION,
  SIZE,
  SWITCH,
  modelOption,
  operatorOption,
  serverOption,
  whole,
  type SomeOptions,
} from '../option-spec.js';
import { parseBytes } from '../units.js';
import { parseJobsPlace } from '../value-forms.js';
import { parseWebhookSecrets } from '../webhook-signer.js';

export const CALLS = {
  queueSize: modelOption({
    ...whole(0, 1_000_000),
    default: '1024',
    help: 'Calls that may wait for a worker; more are refused with 503. 0 refuses whenever every worker is busy.',
  }),
  queueBytes: serverOption({
    ...SIZE,
    default: '512mb',
    help: 'Bytes of request bodies that wait or arrive, for all models together, counted as they arrive; beyond that, requests are refused with 503, the slowest first.',
  }),
  queueTimeout: modelOption({
    ...POSITIVE_DURATION,
    default: '5m',
    help: 'Longest wait for a worker before 504.',
  }),
  rawItems: modelOption({
    ...SWITCH,
    help: 'Custom services get bodies and fields as bytes, whatever their content type. Off: JSON is read, and text is text.',
  }),
  batchSize: modelOption({
    ...whole(1, 1024),
    default: '1',
    help: 'Most calls in one batch, for apps that take batches. 1: every call runs by itself. See docs/batching.md.',
  }),
  maxBatchDelay: modelOption({
    ...DURATION,
    default: '0',
    help: 'Longest time that a call waits for others to fill its batch while a worker is idle. 0: an idle worker takes the waiting calls at once.',
  }),
  concurrency: operatorOption({
    ...whole(1, MAX_CONCURRENCY),
    unset: 'what the app sets',
    help: `Most calls that run at the same time in one worker, for apps whose config sets concurrency (at most ${MAX_CONCURRENCY}). 1: one after the other. See docs/batching.md.`,
  }),
  runTimeout: modelOption({
    ...POSITIVE_DURATION,
    default: '5m',
    help: 'Longest run of one call: then the abort signal, a grace of 1s, SIGKILL; the caller gets 504.',
  }),
  websocketIdleTimeout: modelOption({
    ...POSITIVE_DURATION,
    default: '1m',
    help: 'Longest time without a message in either direction on a WebSocket whose app waits for its client; then it is closed. An open WebSocket occupies a worker.',
  }),
} as const satisfies SomeOptions;

export const JOBS = {
  jobs: serverOption({
    value: '<store>',
    parse: parseJobsPlace,
    default: 'memory',
    secret: true, // may have a password
    help: 'Where jobs are kept: memory loses them with the process; local keeps them in the folder .banana-jobs, local:<folder> in another, which one server at a time may use; redis://… (or rediss://…) keeps them in a Redis that many servers share. See docs/jobs.md.',
  }),
  jobRetention: serverOption({
    ...POSITIVE_DURATION,
    unset: '24h; in memory 15m',
    help: 'Time that an ended job is kept with its result, if there is room.',
  }),
  jobBytes: serverOption({
    ...SIZE,
    unset: '1gb; in memory 256mb',
    help: 'Bytes of the bodies and results of jobs, 1 KiB a job at least. When they run short, ended jobs are dropped, the oldest first; then new jobs are refused with 503, and results are dropped.',
  }),
} as const satisfies SomeOptions;

export const CLIENTS = {
  maxBody: serverOption({
    ...SIZE,
    default: '100000000',
    help: 'Largest request body; larger ones get 413 while they arrive.',
  }),
  maxOutput: serverOption({
    value: '<size>',
    parse: (raw) => Math.min(parseBytes(raw), 2 ** 32 - 1),
    default: '100000000',
    help: 'Largest answer that is not a stream; a larger one is a 500.',
  }),
  compress: serverOption({
    ...SWITCH,
    help: 'Compress answers and pages of text, JSON or XML for clients that accept br or gzip. It takes CPU and may show secrets to observers: see docs/security.md.',
  }),
  unsentBytes: serverOption({
    ...SIZE,
    default: '512mb',
    help: 'Bytes of answers that clients have not read yet; beyond that the slowest readers are cut off. One answer of --max-output always has room.',
  }),
  headerTimeout: serverOption({
    ...POSITIVE_DURATION,
    default: '20s',
    help: 'Longest time for the request headers to arrive; then 408.',
  }),
  bodyTimeout: serverOption({
    ...POSITIVE_DURATION,
    default: '30s',
    help: 'Longest pause inside a request body; then 408. A body of less than 1 kB/s on average gets 408 too, after 30 s.',
  }),
  stallTimeout: serverOption({
    ...POSITIVE_DURATION,
    default: '60s',
    help: 'Longest time a client may read nothing of its answer before it is cut off. One that reads at least 1 kB/s on average never is.',
  }),
} as const satisfies SomeOptions;

export const WEBHOOKS = {
  webhookSecret: serverOption({
    value: '<secret>',
    parse: parseWebhookSecrets,
    unset: 'not signed',
    secret: true,
    help: 'Secret that signs webhooks (Standard Webhooks): whsec_ followed by base64; each of several, separated by spaces or commas, signs. Prefer the environment.',
  }),
} as const satisfies SomeOptions;
