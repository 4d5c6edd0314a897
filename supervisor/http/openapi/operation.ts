/**
 * An operation in the terms of OpenAPI 3.1, as far as our document needs them. Each dialect describes its own operations
 * (`Dialect.describe`), and `document.ts` makes one document of them.
 */
import type { ServeError } from '../../../protocol/errors.js';
import type { Backend } from '../request/backend.js';

/** The facts about a server that decide which paths it answers now. */
export type DescribedServer = Pick<Backend, 'models' | 'isMmsMode'> & {
  readonly options: Pick<Backend['options'], 'openapiAll' | 'modelStore' | 'models'>;
};

export type JsonType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null';

/** A schema without any keyword allows every value. */
export interface JsonSchema {
  readonly type?: JsonType;
  readonly format?: string;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly description?: string;
}

/** A schema that the document has once, under this name. */
export interface NamedSchema {
  /** Unique among all schemas of a document that differ. */
  readonly name: string;
  readonly schema: JsonSchema;
}

/** By media type. */
export type ApiContent = Readonly<
  Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>
>;

export interface ApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface ApiBody {
  readonly description?: string;
  readonly required?: boolean;
  readonly content: ApiContent;
}

export interface ApiReply {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content?: ApiContent;
}

/** By status; `default` stands for all others. */
export type ApiReplies = Readonly<Record<string, ApiReply>>;

export type ApiMethod = 'get' | 'put' | 'post' | 'delete' | 'options' | 'patch';

export interface DescribedOperation {
  /** Percent-encoded (`writtenPath`); parameters are in braces. */
  readonly path: string;
  readonly method: ApiMethod;
  /** Without underscores, which `OperationIds` adds (`operationIdOf`). */
  readonly operationId: string;
  readonly description: string;
  readonly deprecated?: boolean;
  /** As in the dialect's `Operation`. */
  readonly auth: 'none' | 'call' | 'management' | 'body';
  /** The request is a WebSocket handshake. */
  readonly isWebSocket?: boolean;
  /** Other methods of this path do not reach the dialects that come later in the order of precedence. */
  readonly ownsPath?: boolean;
  readonly parameters?: readonly ApiParameter[];
  readonly requestBody?: ApiBody;
  /** The replies that are no errors of this server. */
  readonly responses: ApiReplies;
  /** Errors of this server; the dialect's `fail` decides their statuses, and its `errorBody` describes their bodies. */
  readonly failures?: readonly ServeError[];
}

/** A schema that allows every value. */
export const FREE: JsonSchema = {};

export const BYTES: JsonSchema = { type: 'string', format: 'binary' };

/** JSON or bytes. */
export const FREE_CONTENT: ApiContent = { 'application/json': { schema: FREE }, '*/*': { schema: BYTES } };

export const TEXT: JsonSchema = { type: 'string' };

/** Describes an object that has all of these properties, and may have others. */
export function objectOf(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = Object.keys(properties),
): JsonSchema {
  return { type: 'object', properties, required };
}

export function jsonReply(description: string, schema: JsonSchema): ApiReply {
  return { description, content: { 'application/json': { schema } } };
}

/** Encodes a declared path as clients write it: then no brace in it is taken for a parameter. */
export function writtenPath(path: string): string {
  return encodeURI(path).replace(/[?#]/g, encodeURIComponent);
}
