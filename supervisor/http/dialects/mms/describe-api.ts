/** Describes paths in OpenAPI 3.0.1, as far as our description needs it. */

export interface ApiParameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: ApiSchema;
}

export interface ApiSchema {
  readonly type: 'string' | 'integer' | 'boolean' | 'object' | 'array';
  readonly format?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly enum?: readonly unknown[];
  readonly items?: ApiSchema;
  readonly properties?: Readonly<Record<string, ApiSchema>>;
  readonly required?: readonly string[];
  readonly description?: string;
}

export type ApiContent = Readonly<Record<string, { readonly schema: ApiSchema }>>;

export interface ApiReply {
  readonly description: string;
  readonly content?: ApiContent;
}

export interface ApiOperation {
  /** Unique among all operations that are described together. */
  readonly operationId: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly parameters?: readonly ApiParameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly description?: string;
    readonly content: ApiContent;
  };
  readonly responses: Readonly<Record<string, ApiReply>>;
}

export type ApiMethod = 'get' | 'put' | 'post' | 'delete' | 'options';

/** Operations by path, such as `/models/{model_name}`, and method. */
export type ApiPaths = Readonly<Record<string, Readonly<Partial<Record<ApiMethod, ApiOperation>>>>>;

/** Returns the whole document, to be sent as JSON. */
export function describeApi(paths: ApiPaths): object {
  return {
    openapi: '3.0.1',
    info: {
      title: 'Model Server APIs',
      description: 'Calls the models of this server, and manages them where this listener allows it.',
      version: '1.0.0',
    },
    paths,
  };
}

export function pathParameter(name: string, description: string): ApiParameter {
  return { in: 'path', name, required: true, description, schema: { type: 'string' } };
}

export function queryParameter(name: string, description: string, schema: ApiSchema): ApiParameter {
  return { in: 'query', name, description, schema };
}

/** Describes a JSON reply with this schema. */
export function jsonReply(description: string, schema: ApiSchema): ApiReply {
  return { description, content: { 'application/json': { schema } } };
}

const ERROR: ApiSchema = {
  type: 'object',
  required: ['code', 'type', 'message'],
  properties: {
    code: { type: 'integer', description: 'The HTTP status.' },
    type: { type: 'string', description: 'The class of the error.' },
    message: { type: 'string', description: 'What went wrong.' },
  },
};

/** The body of an error in the document of all dialects. */
export const ERROR_BODY = { name: 'MmsError', schema: ERROR };

/** Describes error replies: `meanings` maps each status to its meaning. */
export function errorReplies(meanings: Readonly<Record<number, string>>): Record<string, ApiReply> {
  return Object.fromEntries(
    Object.entries(meanings).map(([status, meaning]) => [status, jsonReply(meaning, ERROR)]),
  );
}
