/**
 * Reads the control fields that the gateway's clients wrap around the model's input, without parsing that input.
 *
 * `created` is ignored: the server's clock gives the same. `modelKey` is read earlier (`start.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import { nameRequest, type RequestContext } from '../../request/request-context.js';
import { inSlices, scanSlices } from '../../json/slices.js';
import { readBoolean, readString } from '../../json/top-level-fields.js';
import type { Body } from '../../socket/body-memory.js';

export interface GatewayEnvelope {
  /** The client's name for this request. */
  readonly id: string | null;
  readonly apiKey: string | null;
  readonly callID: string | null;
  readonly longPoll: boolean;
  readonly startOnly: boolean;
  /** JSON text, a view of the body; null if absent. */
  readonly modelInputs: Buffer | null;
  readonly feedback: Buffer | null;
}

const FIELDS = ['id', 'apiKey', 'callID', 'longPoll', 'startOnly', 'modelInputs', 'feedback'] as const;

/** Maximum size of a control field, as written; longer ones are ignored. */
const MAX_FIELD_BYTES = 4096;

/** Reads the envelope, and gives the request the envelope's id unless a header has one. @throws SERVE_BAD_BODY */
export async function openEnvelope(context: RequestContext, body: Body): Promise<GatewayEnvelope> {
  const envelope = await inSlices(readBody(body));
  nameRequest(context, envelope.id);
  return envelope;
}

function* readBody(body: Body): Generator<void, GatewayEnvelope> {
  return yield* readEnvelope(yield* body.join());
}

/** Work for `inSlices`, as a body may be large. @throws SERVE_BAD_BODY */
export function* readEnvelope(body: Buffer): Generator<void, GatewayEnvelope> {
  const scanned = yield* scanSlices(body, FIELDS);
  if (scanned.is === 'malformed')
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid JSON: the error is at byte ${scanned.at}.`);
  if (scanned.is === 'other') throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object.');
  const text = (name: (typeof FIELDS)[number]): string | null => {
    const range = scanned.fields.get(name);
    return range === undefined ? null : readString(body, range, MAX_FIELD_BYTES);
  };
  const isTrue = (name: (typeof FIELDS)[number]): boolean => {
    const range = scanned.fields.get(name);
    return range !== undefined && readBoolean(body, range) === true;
  };
  const part = (name: (typeof FIELDS)[number]): Buffer | null => {
    const range = scanned.fields.get(name);
    return range === undefined ? null : body.subarray(range.start, range.end);
  };
  return {
    id: text('id'),
    apiKey: text('apiKey'),
    callID: text('callID'),
    longPoll: isTrue('longPoll'),
    startOnly: isTrue('startOnly'),
    modelInputs: part('modelInputs'),
    feedback: part('feedback'),
  };
}
