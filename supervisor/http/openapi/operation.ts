/**
 * An operation in the terms of OpenAPI, as far as our document needs them. Each dialect describes its own
 * (`Dialect.describe`): those of its fixed paths lie in a file beside it (`operationsOf`), those of models and their routes
 * are made of both (`routes.ts`). `document.ts` makes one document of all.
 */
import { ServeError, type ErrorCode } from '../../../protocol/errors.js';
import type { Task } from '../../../protocol/wire/messages.js';
import type { Backend } from '../request/request-context.js';
import { objectOf, type JsonSchema } from './schemas.js';

/** The facts about a server that decide which paths it answers now. */
export type DescribedServer = Pick<Backend, 'models' | 'isMmsMode'> & {
  readonly options: Pick<Backend['options'], 'openapiAll' | 'modelStore' | 'models'>;
};

/** Whether the paths for clients of these apps are described; `api` as in the worker's `LoadedInfo`. */
export function describesClientsOf({ models, options }: DescribedServer, api: string): boolean {
  return options.openapiAll || models.describe().some(({ model }) => model.info?.api === api);
}

/** Whether a model has this task: its paths answer only then. */
export function hasTask({ models }: DescribedServer, task: Task): boolean {
  return models.describe().some(({ model }) => model.info?.task === task);
}

/** Operations by path and method, as OpenAPI has them. */
export type ApiPaths = Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>;

export interface ApiOperation {
  /** Without underscores, which `uniqueIds` adds (`operationIdOf`). */
  readonly operationId: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly parameters?: readonly object[];
  readonly requestBody?: object;
  /** The replies that are no errors of this server, by status; `default` stands for all others. */
  readonly responses: Readonly<Record<string, object>>;
  /** As `auth` of the dialect's `Operation`; default: `call`. */
  readonly 'x-auth'?: string;
  /** Errors of this server by their codes, each with its message if that is not the usual one. */
  readonly 'x-failures'?: Readonly<Record<string, string>>;
}

export interface DescribedOperation extends Omit<ApiOperation, `x-${string}`> {
  /** Percent-encoded (`encodedPath`); parameters are in braces. */
  readonly path: string;
  readonly method: string;
  /** As in the dialect's `Operation`. */
  readonly auth: 'none' | 'call' | 'management' | 'body';
  /** The request is a WebSocket handshake. */
  readonly isWebSocket?: boolean;
  /** Other methods of this path do not reach the dialects that come later in the order of precedence. */
  readonly ownsPath?: boolean;
  /** Errors of this server; the dialect's `fail` decides their statuses, and its `errorBody` describes their bodies. */
  readonly failures?: readonly ServeError[];
  /** Components to which its schemas refer, by names that no other operation gives to another schema. */
  readonly schemas?: Readonly<Record<string, object>>;
}

/**
 * A file of the fixed paths of a dialect: `ApiPaths` with short forms. `{ "$ref": "#name" }` is the part of that name: an
 * object, to which the members beside it are added, or the items of a list. `json` is the `content` of that type, and
 * `fields` are the `properties` of an object that has all of them. TypeScript reads a word of JSON as any text, so a test
 * compares the files with the code.
 */
export interface ApiFile {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly parts?: Readonly<Record<string, unknown>>;
}

/** Returns the operations of a file. `given`: parts in place of the file's own, as they are sent. */
export function operationsOf(
  file: ApiFile,
  given: Readonly<Record<string, object>> = {},
): DescribedOperation[] {
  return Object.entries(pathsOf(file, given)).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { 'x-auth': auth = 'call', 'x-failures': failures = {}, ...sent } = operation;
      return {
        ...sent,
        path,
        method,
        auth: auth as DescribedOperation['auth'],
        failures: Object.entries(failures).map(
          ([code, message]) => new ServeError(code as ErrorCode, message === '' ? undefined : message),
        ),
      };
    }),
  );
}

/** Returns the paths of a file with its short forms written out. */
export function pathsOf(
  { paths, parts = {} }: ApiFile,
  given: Readonly<Record<string, object>> = {},
): ApiPaths {
  const written = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.flatMap(written);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...own } = value as Readonly<Record<string, unknown>>;
    const name = typeof $ref === 'string' ? $ref.slice(1) : null;
    const part = name === null ? {} : (given[name] ?? (written(parts[name]) as object));
    if (Array.isArray(part)) return part;
    const members = Object.entries(own).flatMap(([key, member]): [string, unknown][] => {
      const one = written(member);
      if (key === 'json') return [['content', { 'application/json': { schema: one } }]];
      return key === 'fields'
        ? Object.entries(objectOf(one as Readonly<Record<string, JsonSchema>>))
        : [[key, one]];
    });
    return { ...part, ...Object.fromEntries(members) };
  };
  return written(paths) as ApiPaths;
}

/** Encodes a declared path as clients write it: then no brace in it is taken for a parameter. */
export function encodedPath(path: string): string {
  return encodeURI(path).replace(/[?#]/g, encodeURIComponent);
}

/**
 * Makes the name of an operation, by which generated clients call it: a verb, what it is about (model, route, version), and
 * the family of the path unless it is the app's own: `callDigits`, `callDigitsV2`. Words are the letters and digits of
 * `about`, without accents; each begins with a capital.
 */
export function operationIdOf(verb: string, ...about: readonly string[]): string {
  const words = about.flatMap((text) => text.normalize('NFKD').replace(/\p{M}/gu, '').match(WORDS) ?? []);
  return verb + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

const WORDS = /[A-Za-z0-9]+/g;

/** Returns the names of one document: of several that are alike, the later ones get `_2`, `_3` and so on. */
export function uniqueIds(): (id: string) => string {
  const counts = new Map<string, number>();
  return (id) => {
    const count = (counts.get(id) ?? 0) + 1;
    counts.set(id, count);
    return count === 1 ? id : `${id}_${count}`;
  };
}
