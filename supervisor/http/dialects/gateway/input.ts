/** Makes the call that a worker gets from a gateway request: the model's input, without what was wrapped around it. */
import type { IncomingMessage } from 'node:http';
import { Job, NOWHERE, type JobCall } from '../../../dispatch/job.js';
import type { Ask } from '../../call/ask.js';
import type { GatewayEnvelope } from './envelope.js';
import { copySlices, inSlices } from '../../call/slices.js';
import { describeCall } from '../../call/describe-call.js';

/** The app's route that is called this way. */
export const GATEWAY_ROUTE = '/';

const EMPTY_INPUT = Buffer.from('{}');

/** Makes a job that no client's leaving ends. `wholeBytes` is the size of the body that the input is a part of. */
export async function newGatewayJob(
  ask: Ask,
  { modelInputs }: Pick<GatewayEnvelope, 'modelInputs'>,
  wholeBytes: number,
): Promise<Job> {
  const input = modelInputs === null ? EMPTY_INPUT : await ownBytes(modelInputs, wholeBytes);
  const times = { acceptedAtMs: ask.acceptedAtMs, deadlineAtMs: null };
  return new Job(describeStart(ask, input), [input], times, NOWHERE);
}

/** A small part of a large body is copied, so that it is all that is kept, as the queue's limit counts it. */
async function ownBytes(part: Buffer, wholeBytes: number): Promise<Buffer> {
  return 2 * part.length < wholeBytes ? inSlices(copySlices(part)) : part;
}

/** A JSON call like any other, whose client can only read ASCII; the app is told its id under Banana's name. */
function describeStart({ request, requestId }: Ask, input: Buffer): JobCall {
  const target = { route: GATEWAY_ROUTE, format: 'json' } as const;
  const call = describeCall(request, requestId, target, null, input.length);
  const type = 'application/json';
  const headers = [...headersOfCaller(request), 'Content-Type', type, 'X-Banana-Request-Id', requestId];
  return { ...call, contentType: type, accept: type, headers: headers.join('\n'), asciiJson: true };
}

/** The request's headers without those that describe the envelope. */
function headersOfCaller({ rawHeaders }: IncomingMessage): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (!ENVELOPE_HEADERS.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
}

const ENVELOPE_HEADERS: ReadonlySet<string> = new Set([
  'accept',
  'content-encoding',
  'content-length',
  'content-type',
  'transfer-encoding',
  'x-banana-request-id',
]);
