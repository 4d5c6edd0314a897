/**
 * The requests of the gateway's clients: starts of calls, checks of them, and feedback. Only a start takes a place in a queue.
 * The control fields that clients wrap around the model's input are read without parsing that input.
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../../protocol/errors.js';
import { hasEnded } from '../../../jobs/job-record.js';
import type { Model } from '../../../models/model.js';
import type { Models } from '../../../models/models.js';
import { keyOf } from '../../access/api-keys.js';
import { HOLD_MS, whenEnded } from '../../answer/job-answers.js';
import { refuseRequest } from '../../answer/own-answers.js';
import { defaultModel, jsonField, modelNames, targetNamedBy } from '../../call/find-model.js';
import { copySlices, inSlices } from '../../json/slices.js';
import { readString, scanSlices } from '../../json/top-level-fields.js';
import { nameRequest, readSmallBody, type RequestContext } from '../../request/request-context.js';
import type { Body } from '../../socket/body-memory.js';
import type { CallPlan, OpenedBody, Target } from '../dialect.js';
import { plainReply, sendEnded, sendReply } from './reply.js';

const CALL_PREFIX = 'call_';

/** The only route of an app that can be called this way. */
export const GATEWAY_ROUTE = '/';

const EMPTY_INPUT = Buffer.from('{}');
const JSON_TYPE = 'application/json';

/**
 * Plans the call of a start. `mayWait`: the client accepts the result in the start's own answer, unless it sends
 * `startOnly`.
 */
export function startPlan(models: Models, mayWait: boolean): CallPlan {
  return {
    target: startTarget(models),
    format: 'json',
    asciiJson: true,
    noRoute: new ServeError(
      'SERVE_NOT_FOUND',
      `The app has no route ${GATEWAY_ROUTE}, the only route that can be called this way.`,
    ),
    open: (context, body) => open(context, body, mayWait),
  };
}

/**
 * Finds the model that a start calls, by `modelKey`. Banana's clients always send one, which has no meaning on a server with
 * one model: there it is ignored. With several models an unknown key is refused, and a missing key means the default model.
 */
function startTarget(models: Models): CallPlan['target'] {
  const only = onlyModel(models);
  if (only !== null) return target(only);
  return targetNamedBy(jsonField('modelKey'), (name) =>
    target(name === null ? defaultModel(models) : models.find({ name })),
  );
}

function target(model: Model): Target {
  return { model, route: GATEWAY_ROUTE };
}

/** Returns the default version of the only model; null if there are several models, or none. */
function onlyModel(models: Models): Model | null {
  const [name, ...others] = modelNames(models);
  return name === undefined || others.length > 0 ? null : models.find({ name });
}

async function open(context: RequestContext, body: Body, mayWait: boolean): Promise<OpenedBody> {
  const whole = await inSlices(body.join());
  const { json, text, isTrue } = await openEnvelope(context, whole);
  const modelInputs = json('modelInputs');
  return {
    input: modelInputs === null ? EMPTY_INPUT : await ownBytes(modelInputs, body),
    described: { contentType: JSON_TYPE, accept: JSON_TYPE, headers: inputHeaders(context) },
    key: text('apiKey'),
    answerKept: (_context, { id }) => answerStart(context, id, mayWait && !isTrue('startOnly')),
  };
}

/**
 * Copies the input if it is a small part of a large body: then only the input stays in memory, as the queue's limit
 * counts it.
 */
async function ownBytes(part: Buffer, body: Body): Promise<Buffer> {
  if (2 * part.length >= body.bytes) return part;
  const copy = await inSlices(copySlices(part));
  body.release();
  return copy;
}

/** The headers of a request whose body is the input alone; the app finds the request's id under Banana's name. */
function inputHeaders({ request, requestId }: RequestContext): string {
  const own = ['Content-Type', JSON_TYPE, 'X-Banana-Request-Id', requestId];
  return [...callerHeaders(request), ...own].join('\n');
}

/** The request's headers without those that describe the envelope. */
function callerHeaders({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (!ENVELOPE_HEADERS.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

const ENVELOPE_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'content-encoding',
  'content-length',
  'content-type',
  'transfer-encoding',
  'x-banana-request-id',
]);

/** `waits`: the client gets the result if it comes in time. */
async function answerStart(context: RequestContext, id: string, waits: boolean): Promise<void> {
  const callID = CALL_PREFIX + id;
  const record = waits ? await whenEnded(context, id, HOLD_MS) : null;
  if (context.response.destroyed) return;
  if (record !== null && hasEnded(record)) await sendEnded(context, record, { callID, finished: true });
  else sendReply(context, plainReply(context.requestId, 'success', { callID, finished: false }));
}

/** Maximum bytes of one feedback in the log. */
const MAX_LOGGED_BYTES = 2048;

export function answerCheck(context: RequestContext): Promise<void> {
  return answerEnvelope(context, async ({ text, isTrue }) => {
    const callID = text('callID');
    if (callID?.startsWith(CALL_PREFIX) !== true) throw unknownCall(callID);
    const record = await whenEnded(
      context,
      callID.slice(CALL_PREFIX.length),
      isTrue('longPoll') ? HOLD_MS : 0,
    );
    if (context.response.destroyed) return;
    if (record === null) throw unknownCall(callID);
    reportOnceSent(context);
    if (hasEnded(record)) await sendEnded(context, record);
    else sendReply(context, plainReply(context.requestId, 'running'));
  });
}

/** Logs feedback on a call, known or not: the call's result may no longer be kept. */
export function answerFeedback(context: RequestContext): Promise<void> {
  return answerEnvelope(context, ({ json, text }) => {
    const { backend, requestId } = context;
    const callID = text('callID')?.slice(0, 100) ?? null;
    const feedback = json('feedback')?.toString('utf8', 0, MAX_LOGGED_BYTES).replace(/\s+/g, ' ') ?? '';
    backend.log.info({ requestId, callID, feedback }, 'feedback on a call');
    reportOnceSent(context);
    sendReply(context, plainReply(requestId, 'success'));
  });
}

/** Reports the answer to the observer once it is sent, which may be late, or never if the client disconnects first. */
function reportOnceSent(context: RequestContext): void {
  const { backend, response } = context;
  response.once('finish', () => backend.observer.answered(context, response.statusCode, null));
}

/** Reads the envelope and checks the key, which may be in it. Rejects only because of a bug in this server. */
async function answerEnvelope(
  context: RequestContext,
  respond: (envelope: Awaited<ReturnType<typeof openEnvelope>>) => void | Promise<void>,
): Promise<void> {
  const { keys } = context.backend;
  try {
    const envelope = await openEnvelope(context, await readSmallBody(context));
    const sent = keyOf(context.request.headers, context.headerNames.keys);
    if (!keys.allows(sent) && !keys.allows(envelope.text('apiKey')))
      throw new ServeError('SERVE_UNAUTHORIZED');
    await respond(envelope);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    if (thrown.code !== 'SERVE_CANCELLED') refuseRequest(context, thrown, {});
  }
}

function unknownCall(callID: string | null): ServeError {
  const named = callID === null ? 'the body has no callID' : callID.slice(0, 100);
  return new ServeError(
    'SERVE_NOT_FOUND',
    `callID does not exist, or its result is no longer kept: ${named}`,
  );
}

const FIELDS = ['id', 'apiKey', 'callID', 'longPoll', 'startOnly', 'modelInputs', 'feedback'] as const;

/** Maximum size of a control field, as written; longer ones are ignored. */
const MAX_FIELD_BYTES = 4096;

type Field = (typeof FIELDS)[number];

/**
 * Reads the envelope, and gives the request the envelope's id unless a header has one. Returns readers of a field: as JSON
 * text, a view of the body; as a string; as a boolean. @throws SERVE_BAD_BODY
 */
async function openEnvelope(context: RequestContext, body: Buffer) {
  const { is, fields, at } = await inSlices(scanSlices(body, FIELDS));
  if (is === 'malformed')
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid JSON: the error is at byte ${at}.`);
  if (is === 'other JSON') throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object.');
  const json = (name: Field): Buffer | null => fields.get(name) ?? null;
  const text = (name: Field): string | null => readString(json(name) ?? NULL, MAX_FIELD_BYTES);
  const isTrue = (name: Field): boolean => json(name)?.equals(TRUE) === true;
  nameRequest(context, text('id'));
  return { json, text, isTrue };
}

const TRUE = Buffer.from('true');
const NULL = Buffer.from('null');
