/**
 * Reads the control fields that the gateway's clients wrap around the model's input, without parsing that input.
 *
 * `created` is ignored: the server's clock gives the same. `modelKey` is read earlier (`start.ts`).
 */
import { ServeError } from '../../../../protocol/errors.js';
import { nameRequest, type RequestContext } from '../../request/request-context.js';
import { inSlices } from '../../json/slices.js';
import { readString, scanSlices } from '../../json/top-level-fields.js';

const FIELDS = ['id', 'apiKey', 'callID', 'longPoll', 'startOnly', 'modelInputs', 'feedback'] as const;

/** Maximum size of a control field, as written; longer ones are ignored. */
const MAX_FIELD_BYTES = 4096;

type Field = (typeof FIELDS)[number];

/** Reads the envelope, and gives the request the envelope's id unless a header has one. @throws SERVE_BAD_BODY */
export async function openEnvelope(context: RequestContext, body: Buffer): Promise<GatewayEnvelope> {
  const { is, fields, at } = await inSlices(scanSlices(body, FIELDS));
  if (is === 'malformed')
    throw new ServeError('SERVE_BAD_BODY', `The body is not valid JSON: the error is at byte ${at}.`);
  if (is === 'other JSON') throw new ServeError('SERVE_BAD_BODY', 'The body must be a JSON object.');
  const json = (name: Field): Buffer | null => fields.get(name) ?? null;
  const text = (name: Field): string | null => readString(json(name) ?? NULL, MAX_FIELD_BYTES);
  const isTrue = (name: Field): boolean => json(name)?.equals(TRUE) === true;
  nameRequest(context, text('id'));
  return { json, text, isTrue };
}

/** Reads a field: as JSON text, a view of the body; as a string; as a boolean. */
export interface GatewayEnvelope {
  json(this: void, name: Field): Buffer | null;
  text(this: void, name: Field): string | null;
  isTrue(this: void, name: Field): boolean;
}

const TRUE = Buffer.from('true');
const NULL = Buffer.from('null');
