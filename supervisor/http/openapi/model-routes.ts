/**
 * Describes the inputs and outputs of a model's routes: by the app's signature, else by its example, else as free. They are
 * free too while no worker has loaded the app.
 */
import { ServeError } from '../../../protocol/errors.js';
import type { LoadedInfo, Route, RouteKind } from '../../../protocol/wire/messages.js';
import type { Model } from '../../models/model.js';
import { rootOrOnlyRoute } from '../call/find-route.js';
import { JOB_ID_HEADER, JOB_PAGE_HEADER } from '../access/client-headers.js';
import { inferSchema } from './infer-schema.js';
import {
  BYTES,
  FREE,
  FREE_CONTENT,
  TEXT,
  jsonReply,
  objectOf,
  type ApiBody,
  type ApiReply,
  type JsonSchema,
} from './operation.js';
import { listedTensors, outputTensors } from './tensor-schema.js';

export interface DescribedRoute {
  /** As declared. */
  readonly path: string;
  readonly kind: RouteKind;
  readonly takesOnlyJson: boolean;
  /** An empty body is refused. */
  readonly needsBody: boolean;
  /** The JSON that the route takes. */
  readonly input: JsonSchema;
  /** The JSON that it returns. */
  readonly output: JsonSchema;
  /** An input; undefined if none is known. */
  readonly example?: unknown;
}

export interface DescribedRoutes {
  readonly all: readonly DescribedRoute[];
  /** The route of a call that names only the model; null if there is none, or several. */
  readonly main: DescribedRoute | null;
}

type DescribedModel = Pick<Model, 'info' | 'routes'>;

export function describedRoutes({ info, routes }: DescribedModel): DescribedRoutes {
  if (info === null || routes === null) return LOADING;
  const known = described.get(info);
  if (known !== undefined) return known;
  const main = mainPathOf(routes);
  const all = info.routes.map((route) => describeRoute(route, route.path === main ? info : null));
  const made = { all, main: all.find(({ path }) => path === main) ?? null };
  described.set(info, made);
  return made;
}

/** An example may be 64 KB of JSON, which is read only once. */
const described = new WeakMap<LoadedInfo, DescribedRoutes>();

/** The only route of most apps. */
export const ASSUMED: DescribedRoute = {
  path: '/',
  kind: 'handler',
  takesOnlyJson: false,
  needsBody: false,
  input: FREE,
  output: FREE,
};
const LOADING: DescribedRoutes = { all: [ASSUMED], main: ASSUMED };

function mainPathOf(routes: NonNullable<DescribedModel['routes']>): string | null {
  try {
    return rootOrOnly(routes);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    return null;
  }
}

const rootOrOnly = rootOrOnlyRoute(() => new ServeError('SERVE_NOT_FOUND'));

/** `info`: null for a route whose input and output the app does not describe. */
function describeRoute({ path, kind, input }: Route, info: LoadedInfo | null): DescribedRoute {
  const takesOnlyJson = input === 'json';
  const route = { ...ASSUMED, path, kind, takesOnlyJson, needsBody: takesOnlyJson };
  if (info === null) return route;
  const example = parsed(info.example);
  const { signature, api } = info;
  const isNoCode = api === 'none'; // the server itself reads its inputs, and makes lists of its outputs
  const schemas =
    signature === undefined
      ? { input: example === undefined ? FREE : inferSchema(example) }
      : {
          input: listedTensors(signature.inputs),
          output: isNoCode ? listedTensors(signature.outputs) : outputTensors(signature.outputs),
        };
  const isShown = example !== undefined && info.example.length <= MAX_SHOWN_CHARS;
  return { ...route, needsBody: takesOnlyJson || isNoCode, ...schemas, ...(isShown ? { example } : {}) };
}

/** Longer examples are not repeated at every path of their model. */
const MAX_SHOWN_CHARS = 1000;

/** Undefined for no JSON, which a worker of another kind might send. */
function parsed(example: string): unknown {
  try {
    return JSON.parse(example);
  } catch {
    return undefined;
  }
}

/** Describes the body of a call. */
export function bodyOf({ takesOnlyJson, needsBody, input, example }: DescribedRoute): ApiBody {
  const json = { schema: input, ...(example === undefined ? {} : { example }) };
  return {
    required: needsBody,
    content: { 'application/json': json, ...(takesOnlyJson ? {} : { '*/*': { schema: BYTES } }) },
  };
}

/** Describes the answer of a call that succeeds. */
export function replyOf({ kind, output }: DescribedRoute): ApiReply {
  if (kind === 'background') return STARTED;
  const content = output === FREE ? FREE_CONTENT : { 'application/json': { schema: output } };
  return { description: "The app's answer.", content };
}

function acceptedJob(description: string): ApiReply {
  const body = objectOf({ started: { type: 'boolean', const: true }, jobId: TEXT, result: TEXT }, [
    'started',
  ]);
  return {
    ...jsonReply(description, body),
    headers: {
      [JOB_ID_HEADER]: { description: 'The id of the job.', schema: TEXT },
      [JOB_PAGE_HEADER]: { description: 'The path of its page.', schema: TEXT },
    },
  };
}

const STARTED = acceptedJob('The job is accepted; its page has its result.');

/** Describes the answer of a call with `Prefer: respond-async`. */
export const ACCEPTED = acceptedJob(
  'For a call with Prefer: respond-async: it is a job; its page has its result.',
);
