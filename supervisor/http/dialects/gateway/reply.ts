/**
 * Sends the gateway's replies, always with HTTP 200: bytes, with the model's output in the middle as it came.
 *
 * They are always pure ASCII and always have a `message`: clients read nothing else of a failure, and treat every
 * message that contains "error" as one. So no other message may contain that word, and a client's own text appears only
 * in failures.
 */
import { escapeNonAscii } from '../../../../protocol/text/charsets.js';
import type { ServeError } from '../../../../protocol/errors.js';
import type { ReplyHead } from '../../../../protocol/wire/messages.js';
import type { EndedRecord } from '../../../jobs/job-record.js';
import { readResult } from '../../answer/job-answers.js';
import { sendPieces } from '../../answer/own-answers.js';
import { serverTiming } from '../../answer/reply-sink.js';
import { isJson } from '../../call/find-route.js';
import { inSlices, writeAscii } from '../../json/slices.js';
import { checkJson } from '../../json/top-level-fields.js';
import type { RequestContext } from '../../request/request-context.js';

/** The API version in every reply. The published clients pass it on and never check it. */
const API_VERSION = 'banana-serve 1';

type ReplyFields = Readonly<Record<string, string | number | boolean>>;

/** Sends a reply. `ended`: the job whose times are reported in `Server-Timing`. */
export function sendReply(context: RequestContext, pieces: readonly Buffer[], ended?: EndedRecord): void {
  const timing =
    ended === undefined ? {} : { 'Server-Timing': serverTiming(ended.end.queueMs, ended.end.runMs) };
  sendPieces(context, 200, { 'Content-Type': 'application/json', ...timing }, pieces);
}

/** Sends the result of a job. Its output may have to be read first; the client may disconnect meanwhile. */
export async function sendEnded(
  context: RequestContext,
  record: EndedRecord,
  fields: ReplyFields = {},
): Promise<void> {
  const outcome = await outcomeOf(record, await readResult(context, record));
  const { requestId, response } = context;
  if (!response.destroyed) sendReply(context, endedReply(requestId, outcome, fields), record);
}

/** Writes a reply without an output. `fields` follow those that every reply has. */
export function plainReply(
  requestId: string,
  message: 'success' | 'running',
  fields: ReplyFields = {},
): Buffer[] {
  return [Buffer.from(asciiJson({ ...commonFields(requestId, message), ...fields }))];
}

/**
 * Writes a failure, for HTTP 200 like every other reply: with any other status these clients discard the body, and they
 * never retry.
 */
export function failureReply(
  requestId: string,
  { code, message, issues = [] }: Failure,
  fields: ReplyFields = {},
): Buffer[] {
  const common = commonFields(requestId, `inference server error: ${message}`);
  const found = issues.length === 0 ? {} : { issues };
  return [Buffer.from(asciiJson({ ...common, ...fields, code, ...found }))];
}

/** Writes the reply for a job that has ended: its output or its error. */
function endedReply(requestId: string, outcome: Outcome, fields: ReplyFields): Buffer[] {
  if ('code' in outcome) return failureReply(requestId, outcome, fields);
  const before = asciiJson({ ...commonFields(requestId, 'success'), ...fields });
  return [Buffer.from(`${before.slice(0, -1)},"modelOutputs":[`), ...outcome.json, Buffer.from(']}')];
}

function commonFields(id: string, message: string): ReplyFields {
  return { id, message, created: Math.floor(Date.now() / 1000), apiVersion: API_VERSION };
}

type Failure = Pick<ServeError, 'code' | 'message'> & Partial<Pick<ServeError, 'issues'>>;

type Outcome = { readonly json: readonly Buffer[] } | Failure;

/**
 * Outcomes by the bodies of results: thousands of clients may wait for one result of many megabytes, which is scanned once.
 */
const outcomes = new WeakMap<Buffer, Promise<Outcome>>();

async function outcomeOf({ end: { error, result } }: EndedRecord, body: Buffer | null): Promise<Outcome> {
  if (error !== null) return error;
  if (body === null || result === null)
    return {
      code: 'SERVE_OUTPUT_TOO_LARGE',
      message: 'The output is too large to be stored until its caller asks for it.',
    };
  const known = outcomes.get(body);
  if (known !== undefined) return known;
  const outcome = readOutput(result.head, body);
  outcomes.set(body, outcome);
  return outcome;
}

async function readOutput(head: ReplyHead, body: Buffer): Promise<Outcome> {
  if (head.status >= 400) {
    const text = body.toString('utf8', 0, MAX_APP_TEXT_BYTES);
    return {
      code: 'SERVE_INFERENCE_FAILED',
      message: `The app answered with status ${head.status}: ${text}`,
    };
  }
  if (body.length === 0) return { json: [NULL] };
  // Scanned, because an app may label anything as JSON: one invalid output would make the whole reply invalid.
  if (isJson(head.contentType) && (await inSlices(checkJson(body))))
    return { json: await inSlices(writeAscii(body)) };
  const type = head.contentType === '' ? 'a body without a content type' : head.contentType;
  return {
    code: 'SERVE_OUTPUT_INVALID',
    message: `The app answered with ${type}; only JSON can be sent this way. Call the route directly.`,
  };
}

/** Maximum bytes of the app's error page in a failure. */
const MAX_APP_TEXT_BYTES = 1000;

const NULL = Buffer.from('null');

function asciiJson(value: object): string {
  return escapeNonAscii(JSON.stringify(value));
}
