/**
 * Creates predictions. One whose client waits is a plain call, which the worker answers. One that has an id in its path or a
 * webhook, or whose client does not wait for ever, is a job: the front reads who asks for it, and for which events, from the
 * body.
 */
import { badField, ServeError } from '../../../../protocol/errors.js';
import { parseWebhookUrl } from '../../../../protocol/webhooks.js';
import { newRequestId } from '../../../dispatch/call.js';
import { hasEnded, type JobRecord } from '../../../jobs/job-record.js';
import type { Routes } from '../../../models/generations.js';
import { rootOrOnlyRoute } from '../../../models/main-route.js';
import type { Models } from '../../../models/models.js';
import { hiddenBecause } from '../../access/app-words.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../../access/client-headers.js';
import { HOLD_MS, readResult, whenEnded } from '../../answer/job-answers.js';
import { sendPieces } from '../../answer/own-answers.js';
import { defaultModel } from '../../call/find-model.js';
import { preference } from '../../call/find-route.js';
import { inSlices, writeString } from '../../json/slices.js';
import { readString, scanSlices } from '../../json/top-level-fields.js';
import type { RequestContext } from '../../request/request-context.js';
import type { Body } from '../../socket/body-memory.js';
import type { CallPlan, OpenedBody } from '../dialect.js';
import { EVENTS, idOf, jobIdOf, paramsOf, predictionOf } from './prediction.js';

export const PREDICTIONS = '/predictions';

const FORMAT = 'cog';

/** A client that does not say how long it waits for a job waits for its end. */
const DAY_MS = 24 * 3600 * 1000;

/** `id`: that of the path; null without one. @throws SERVE_MODEL_NOT_FOUND, SERVE_BAD_REQUEST */
export function createPlan(context: RequestContext, models: Models, id: string | null): CallPlan {
  const waitMs = waitOf(context, id !== null);
  if (/\btext\/event-stream\b/.test(context.request.headers.accept ?? ''))
    throw new ServeError('SERVE_BAD_REQUEST', 'Predictions are not streamed; call a route.', { status: 406 });
  const target = { model: defaultModel(models), route: (routes: Routes) => routeOf(routes, waitMs !== null) };
  const common = { target, format: FORMAT, answer: FORMAT };
  const jobPlan = (limitMs: number): CallPlan => ({
    ...common,
    open: (_context, body) => open(context, body, id, limitMs),
  });
  if (waitMs !== null) return jobPlan(waitMs);
  return {
    ...common,
    dialectParams: { id: context.requestId, created: String(Date.now()) },
    byBody: async (body) => ((await namesWebhook(body)) ? jobPlan(DAY_MS) : null),
  };
}

/** Only a job has a webhook. A body that is no object is left to the worker. */
async function namesWebhook(body: Body): Promise<boolean> {
  const { is, fields } = await inSlices(scanSlices(await inSlices(body.join()), ['webhook']));
  return is === 'object' && !(fields.get('webhook') ?? NULL).equals(NULL);
}

/** The longest wait for the end of a job; null for a call that is none. */
function waitOf({ request: { headers } }: RequestContext, hasId: boolean): number | null {
  const wait = preference(headers, 'wait');
  if (wait !== null) return wait === '' ? HOLD_MS : Math.min(HOLD_MS, 1000 * (Number(wait) || 0));
  if (preference(headers, 'respond-async') !== null) return 0;
  return hasId ? DAY_MS : null;
}

/** @throws SERVE_NOT_FOUND, SERVE_BAD_REQUEST */
function routeOf(routes: Routes, isJob: boolean): string {
  const path = mainRoute(routes);
  const { kind, webhook = '' } = routes.get(path) ?? {};
  if (webhook !== '')
    throw new ServeError('SERVE_BAD_REQUEST', `The route ${path} has a webhook of its own: call it there.`);
  if (kind !== 'background' || isJob) return path;
  throw new ServeError('SERVE_BAD_REQUEST', 'This model runs in the background: send Prefer: respond-async.');
}

const mainRoute = rootOrOnlyRoute(
  (paths) => new ServeError('SERVE_NOT_FOUND', `The app has no route /; call one of: ${paths.join(', ')}`),
);

async function open(
  context: RequestContext,
  body: Body,
  id: string | null,
  waitMs: number,
): Promise<OpenedBody> {
  const { request } = context;
  const input = await inSlices(body.join());
  const { own, webhook, events } = await fieldsOf(input, id !== null);
  if (id !== null && own !== null && own !== id) throw badField('id', 'The id must be that of the path.');
  const given = id ?? own;
  if (given !== null && !ID.test(given))
    throw badField('id', 'An id has 1 to 128 letters, digits, dots, hyphens and underscores.');
  if (webhook !== '' && hiddenBecause(context) !== null)
    throw new ServeError(
      'SERVE_FORBIDDEN',
      'Without a key, only programs of this machine may name a webhook.',
    );
  return {
    input,
    described: {
      contentType: request.headers['content-type'] ?? '',
      accept: '',
      headers: request.rawHeaders.join('\n'),
      dialectParams: paramsOf(events),
    },
    key: null,
    job: { id: jobIdOf(given ?? newRequestId()), isNamed: given !== null, webhook },
    answerKept: (_context, accepted) => answerCreated(context, accepted, id !== null, waitMs),
  };
}

const ID = /^[\w.-]{1,128}$/;

/** Longest control field, as written. */
const MAX_BYTES = 4096;
const NULL = Buffer.from('null');

/** Reads what the front must know: `own`, its id, is null without one, and `webhook` empty. @throws SERVE_BAD_BODY */
async function fieldsOf(body: Buffer, isPut: boolean) {
  if (body.length === 0) return { own: null, webhook: '', events: [] };
  const { is, fields, at } = await inSlices(scanSlices(body, ['id', 'webhook', 'webhook_events_filter']));
  if (is !== 'object') {
    const hint = isPut ? ' This creates a prediction; call a model of this name by POST.' : '';
    const what = is === 'malformed' ? `is not valid JSON: the error is at byte ${at}.` : 'must be an object.';
    throw badField('', `The body ${what}${hint}`);
  }
  const text = (name: string): string | null => {
    const json = fields.get(name) ?? NULL;
    const value = readString(json, MAX_BYTES);
    if (value === null && !json.equals(NULL)) throw badField(name, `"${name}" must be a text.`);
    return value;
  };
  const webhook = text('webhook') ?? '';
  try {
    if (webhook !== '') parseWebhookUrl(webhook);
  } catch (thrown) {
    throw badField('webhook', (thrown as TypeError).message);
  }
  return { own: text('id'), webhook, events: eventsIn(fields.get('webhook_events_filter') ?? NULL) };
}

function eventsIn(json: Buffer): readonly string[] {
  const events = json.length > MAX_BYTES ? undefined : (JSON.parse(json.toString()) as unknown);
  if (events === null) return EVENTS;
  if (Array.isArray(events) && events.every((one) => EVENTS.includes(one as string)))
    return events as string[];
  throw badField('webhook_events_filter', `"webhook_events_filter" must be a list of ${EVENTS.join(', ')}.`);
}

/**
 * Answers once the prediction has ended, or after `waitMs`. One without an id of the path is `starting` until it has ended:
 * Replicate's client takes `processing` for an end. A repeated request with an id is answered at once.
 */
async function answerCreated(
  context: RequestContext,
  accepted: JobRecord,
  isNamed: boolean,
  waitMs: number,
): Promise<void> {
  const isRepeated = isNamed && accepted.requestId !== context.requestId;
  const limitMs = isRepeated && waitMs === DAY_MS ? 0 : waitMs;
  const record = limitMs === 0 ? accepted : await whenEnded(context, accepted.id, limitMs);
  if (record === null) return; // its client has left
  const page = `${PREDICTIONS}/${idOf(record)}`;
  const headers = { [JOB_ID_HEADER]: record.id, [JOB_PAGE_HEADER]: page, 'Content-Type': 'application/json' };
  const isOver = hasEnded(record);
  const shown = isNamed || isOver ? record : ({ ...record, state: 'queued', begunAt: null } as const);
  const pieces = await readPrediction(context, shown, true);
  if (!context.response.destroyed) sendPieces(context, isOver ? 200 : 202, headers, pieces);
}

/**
 * JSON in pieces. Only who may read the app's words gets what it has printed, as far as the page still has it, and, besides
 * its creator, what it wrote about its error.
 */
export async function readPrediction(context: RequestContext, record: JobRecord, isCreator: boolean) {
  const body = hasEnded(record) && record.end.result !== null ? await readResult(context, record) : null;
  const showsWords = hiddenBecause(context) === null;
  const lines = showsWords ? context.backend.page?.live.log.lines : undefined;
  const logs = await inSlices(writeString((await lines?.printsOf(record.requestId)) ?? ''));
  return predictionOf(record, body, isCreator || showsWords, logs);
}
