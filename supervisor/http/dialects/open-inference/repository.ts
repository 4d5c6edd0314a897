/** The model repository: lists models, loads them from the model store, and unloads them. */
import { ServeError, type ErrorCode } from '../../../../protocol/errors.js';
import type { Outcome } from '../../../models/models.js';
import type { ModelRecord } from '../../request/model-management.js';
import { hiddenBecause } from '../../access/app-words.js';
import {
  maxSmallBody,
  parseJson,
  readSmallBody,
  type RequestContext,
} from '../../request/request-context.js';
import { abortedOnDisconnect } from '../../socket/request-facts.js';
import { isObject } from '../../../options/read-objects.js';
import type { AnswerContext } from '../../answer/koa-answers.js';
import { notFound, type PathParams } from './pages.js';

/** `POST /v2/repository/index`: the registered models, then those of the store that are not. */
export async function index(ctx: AnswerContext, context: RequestContext): Promise<void> {
  const { ready = false } = await readObject(context);
  if (typeof ready !== 'boolean') throw new ServeError('SERVE_BAD_BODY', '"ready" must be true or false.');
  const { backend } = context;
  const registered = backend.describeModels(hiddenBecause(context) === null).map(entryOf);
  const names = ready ? [] : await backend.storedModels.list();
  const stored = names.map((name) => ({ name, state: 'UNAVAILABLE', reason: 'not loaded' }));
  ctx.body = [...registered.filter(({ state }) => !ready || state === 'READY'), ...stored];
}

const STATES: Readonly<Record<ModelRecord['state'], string>> = {
  ready: 'READY',
  idle: 'READY',
  starting: 'LOADING',
  unloading: 'UNLOADING',
  draining: 'UNLOADING',
  unhealthy: 'UNAVAILABLE',
  failing: 'UNAVAILABLE',
  unloaded: 'UNAVAILABLE',
};

function entryOf({ name, version, state, processes }: ModelRecord) {
  const failure = processes.find(({ lastError }) => lastError !== '')?.lastError ?? '';
  const reason = state === 'ready' ? '' : state === 'idle' || failure === '' ? state : failure;
  return { name, version, state: STATES[state], reason };
}

/** `POST /v2/repository/models/{model}/load` */
export async function load(
  ctx: AnswerContext,
  context: RequestContext,
  { model: name = '' }: PathParams,
): Promise<void> {
  try {
    refuseOverrides(await readObject(context));
    const { backend, request, response } = context;
    await backend.storedModels.load(name, abortedOnDisconnect(request, response));
  } catch (thrown) {
    throw thrown instanceof ServeError ? notLoaded(context, name, thrown) : thrown;
  }
  ctx.body = { name, load: true };
}

/**
 * The errors of a worker that cannot start: the client asked for it in vain, and it is no failure of the server. Who may
 * manage models may see the reason, which is in the detail.
 */
const START_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'SERVE_APP_INVALID',
  'SERVE_INIT_FAILED',
  'SERVE_INIT_TIMEOUT',
  'SERVE_CRASH_LOOP',
  'SERVE_CONFIG',
  'SERVE_NOT_READY',
]);

/** The words with which Triton begins such an error. */
function notLoaded(
  context: RequestContext,
  name: string,
  { code, message, detail, retryAfterS, cause }: ServeError,
): ServeError {
  const isStart = START_FAILURES.has(code);
  const isShown = isStart && detail !== '' && hiddenBecause(context) === null;
  const reason = isShown ? detail : message;
  return new ServeError(isStart ? 'SERVE_BAD_REQUEST' : code, `failed to load '${name}': ${reason}`, {
    detail,
    cause,
    ...(retryAfterS === undefined ? {} : { retryAfterS }),
  });
}

/** @throws SERVE_BAD_REQUEST: a model is what the store has */
function refuseOverrides({ parameters = {} }: Readonly<Record<string, unknown>>): void {
  if (!isObject(parameters)) throw new ServeError('SERVE_BAD_BODY', '"parameters" must be an object.');
  const given = Object.keys(parameters).find((name) => name === 'config' || name.startsWith('file:'));
  if (given !== undefined)
    throw new ServeError(
      'SERVE_BAD_REQUEST',
      `the parameter ${JSON.stringify(given.slice(0, 60))} is not supported: a model is loaded as the model store has it.`,
    );
}

/** `POST /v2/repository/models/{model}/unload`: ends all versions, the default one last. */
export async function unload(
  ctx: AnswerContext,
  context: RequestContext,
  { model: name = '' }: PathParams,
): Promise<void> {
  await readObject(context);
  const { modelManagement, options } = context.backend;
  const versions = context.backend.describeModels(false).filter((record) => record.name === name);
  if (versions.length === 0) throw notFound(new ServeError('SERVE_MODEL_NOT_FOUND'), { name });
  versions.sort((a, b) => Number(a.isDefaultVersion) - Number(b.isDefaultVersion));
  const ends = versions.map(
    ({ version }) => modelManagement.unregister({ name, version }, options.unregisterTimeout).settled,
  );
  for (const outcome of await Promise.all(ends)) checkEnd(name, outcome);
  ctx.body = { name, unload: true };
}

/** @throws SERVE_REQUEST_TIMEOUT, SERVE_SHUTTING_DOWN */
function checkEnd(name: string, { result, error }: Outcome): void {
  if (result === 'done') return;
  if (result === 'unfinished')
    throw new ServeError(
      'SERVE_REQUEST_TIMEOUT',
      `failed to unload '${name}' in time (--unregister-timeout); its calls and workers are still ending.`,
    );
  throw error ?? new ServeError('SERVE_SHUTTING_DOWN');
}

/** The object in the body; an empty body has no fields. Rejects with SERVE_BAD_BODY, or as `readSmallBody` does. */
async function readObject(context: RequestContext): Promise<Readonly<Record<string, unknown>>> {
  const body = await readBody(context);
  if (body.length === 0) return {};
  const value = parseJson(body);
  if (!isObject(value)) throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object, or empty.');
  return value;
}

/** A body that is too large can only have files in it, which are not supported. */
async function readBody(context: RequestContext): Promise<Buffer> {
  try {
    return await readSmallBody(context);
  } catch (thrown) {
    if (!(thrown instanceof ServeError) || thrown.code !== 'SERVE_BODY_TOO_LARGE') throw thrown;
    const limit = maxSmallBody(context.backend.options);
    throw new ServeError(
      'SERVE_BAD_REQUEST',
      `The body has more than ${limit} bytes. Models cannot be sent (the parameters config and file:…): they are loaded from the model store.`,
    );
  }
}
