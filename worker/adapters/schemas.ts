/** Checks inputs and outputs by the schemas of an app: Standard Schema, which zod, valibot and arktype have. */
import { Blob } from 'node:buffer';
import { badOutput, type ServeError } from '../../protocol/errors.js';
import {
  isSchema,
  type RouteSchemas,
  type SchemaIssue,
  type StandardSchema,
} from '../api/standard-schema.js';
import { inputInvalid, sentenceOf } from '../failures/invalid-input.js';
import { mediaType } from '../../protocol/text/headers.js';
import { PLAIN_HEAD, Reply } from '../formats/reply.js';
import type { Exports } from './loaded-app.js';
import { isPotassiumResponse, replyOfResponse, isResponse, responseHead } from '../reply/reply-of.js';
import { iteratorOf } from '../reply/stream.js';
import { withPlainArrays } from '../values/plain-arrays.js';
import { isThenable } from '../values/not-data.js';

/** Returns the schemas among the exports `input` and `output`; undefined if neither is one. @throws a TypeError beside a signature */
export function exportedSchemas(exports: Exports): RouteSchemas | undefined {
  const input = isSchema(exports['input']) ? exports['input'] : undefined;
  const output = isSchema(exports['output']) ? exports['output'] : undefined;
  if (input === undefined && output === undefined) return undefined;
  if (exports['signature'] !== undefined) throw besideSignature('`signature` is exported beside a schema');
  return { input, output };
}

export function besideSignature(what: string): TypeError {
  return new TypeError(`${what}; keep one of them: a signature describes tensors, a schema JSON`);
}

/**
 * Returns the input as its schema returns it, or a promise of that; unchanged without a schema. @throws SERVE_INPUT_INVALID
 * (or rejects with it)
 */
export function acceptedInput(schema: StandardSchema | undefined, input: unknown): unknown {
  return schema === undefined ? input : validated(schema, input, inputInvalid);
}

/**
 * Returns the answer as its schema returns it, or a promise of that; unchanged without a schema. Streams, bytes, errors, and a Response that is not JSON
 * with a status from 200 to 299, are returned as they are. @throws SERVE_OUTPUT_INVALID (or rejects with it)
 */
export function acceptedOutput(schema: StandardSchema | undefined, output: unknown): unknown {
  if (schema === undefined) return output;
  if (isThenable(output)) return output.then((value) => acceptedOutput(schema, value));
  if (isResponse(output)) return isJsonSuccess(output) ? acceptedResponse(schema, output) : output;
  if (isPotassiumResponse(output)) return acceptedReply(schema, replyOfResponse(output));
  if (output instanceof Reply) return acceptedReply(schema, output);
  const isBytes = output instanceof Uint8Array || output instanceof ArrayBuffer || output instanceof Blob;
  if (isBytes || output instanceof Error) return output;
  const iterator = iteratorOf(output); // asked for once: a stream of the web is locked from then on
  if (iterator !== null) return new Reply(PLAIN_HEAD, { kind: 'stream', iterator, byAccept: true });
  return validated(schema, output, outputInvalid);
}

function isJsonSuccess({ ok, headers }: Response): boolean {
  return ok && mediaType(headers.get('content-type') ?? '') === 'application/json';
}

async function acceptedResponse(schema: StandardSchema, response: Response): Promise<Reply> {
  const head = responseHead(response);
  return new Reply(head, {
    kind: 'json',
    value: await validated(schema, await response.json(), outputInvalid),
  });
}

function acceptedReply(schema: StandardSchema, reply: Reply): unknown {
  const { head, body } = reply;
  if (head.status > 299 || body.kind !== 'json') return reply;
  const value = validated(schema, body.value, outputInvalid);
  const replyOf = (accepted: unknown): Reply => new Reply(head, { kind: 'json', value: accepted });
  return isThenable(value) ? value.then(replyOf) : replyOf(value);
}

function validated(
  schema: StandardSchema,
  value: unknown,
  refuse: (issues: readonly SchemaIssue[]) => ServeError,
): unknown {
  const valueOf = (result: Awaited<ReturnType<typeof validate>>): unknown => {
    if (result.issues !== undefined) throw refuse(result.issues);
    return result.value;
  };
  const { validate } = schema['~standard'];
  const result = validate(withPlainArrays(value));
  return isThenable(result) ? result.then(valueOf) : valueOf(result);
}

function outputInvalid(issues: readonly SchemaIssue[]): ServeError {
  return badOutput(`The model's output does not fit its schema: ${sentenceOf(issues)}.`);
}
