/**
 * Reads the control fields that the gateway's clients wrap around the model's input, without parsing that input.
 *
 * `created` is ignored: the server's clock gives the same. `modelKey` is read earlier (`start.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import { nameRequest, type RequestContext } from '../../request/request-context.js';
import { inSlices } from '../../json/slices.js';
import { readString, scanSlices } from '../../json/top-level-fields.js';

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
export async function openEnvelope(context: RequestContext, body: Buffer): Promise<GatewayEnvelope> {
  const envelope = await inSlices(readEnvelope(body));
  nameRequest(context, envelope.id);
  return envelope;
}

function* readEnvelope(body: Buffer): Generator<void, GatewayEnvelope> {
  const scanned = yield* scanSlices(body, FIELDS);
  if (scanned.is === 'malformed')
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid JSON: the error is at byte ${scanned.at}.`);
  if (scanned.is === 'other JSON') throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object.');
  const part = (name: (typeof FIELDS)[number]): Buffer | null => scanned.fields.get(name) ?? null;
  const text = (name: (typeof FIELDS)[number]): string | null =>
    readString(part(name) ?? NULL, MAX_FIELD_BYTES);
  return {
    id: text('id'),
    apiKey: text('apiKey'),
    callID: text('callID'),
    longPoll: part('longPoll')?.equals(TRUE) === true,
    startOnly: part('startOnly')?.equals(TRUE) === true,
    modelInputs: part('modelInputs'),
    feedback: part('feedback'),
  };
}

const TRUE = Buffer.from('true');
const NULL = Buffer.from('null');
