/** Plans the calls that the gateway's clients start, and answers the start. */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../../protocol/errors.js';
import { hasEnded } from '../../../jobs/job-record.js';
import type { Model } from '../../../models/model.js';
import type { Models } from '../../../models/models.js';
import type { RequestContext } from '../../request/request-context.js';
import { HOLD_MS, whenEnded } from '../../answer/job-answers.js';
import { defaultModel, jsonField, modelNames, targetNamedBy } from '../../call/find-model.js';
import { copySlices, inSlices } from '../../json/slices.js';
import type { Body } from '../../socket/body-memory.js';
import type { CallPlan, OpenedBody, Target } from '../dialect.js';
import { openEnvelope } from './envelope.js';
import { plainReply, sendEnded, sendReply } from './reply.js';

export const CALL_PREFIX = 'call_';

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
