/**
 * The gateway dialect: what the platform's API was to Banana's clients of majors 2 to 4. A call is started, then
 * asked for until it has ended.
 *
 * 1. A start has a place in the queue before its body is read, as every call has; a check and feedback need none.
 * 2. The body's control fields are found, the key among them; the model's input stays bytes.
 * 3. A start becomes a kept job of the app's route `/`, whether its client stays or not. Whoever waits for the
 *    result, in the start itself or in a check, is told when the job ends, or after a time that it still runs.
 *
 * Every reply is HTTP 200, failures too (reply.ts).
 */
import type { IncomingMessage } from 'node:http';
import { ServeError } from '../../../../protocol/errors.js';
import { Arrivals, type Admission } from '../../../dispatch/arrivals.js';
import { ByteBudget } from '../../../dispatch/byte-budget.js';
import type { Log } from '../../../observe/log.js';
import { keyOf } from '../../call/api-keys.js';
import type { Ask } from '../../call/ask.js';
import type { Backend } from '../../call/backend.js';
import { inSlices, joinSlices } from '../../call/slices.js';
import { checkCall, startCall } from './calls.js';
import { readEnvelope, type GatewayEnvelope } from './envelope.js';
import { answer, turnAway } from './answer.js';
import { GATEWAY_PATHS, type GatewayOperation } from '../own-paths.js';
import { plainReply } from './reply.js';
import type { Body } from '../../socket/body-memory.js';
import { announcedBytes, receiveBody } from '../../socket/receive-body.js';
import { requestIdOf } from '../../socket/request-id.js';

/** Size limit of a request that starts nothing: it holds ids and a few words, and takes no place in the queue. */
const MAX_WORDS_BYTES = 64 * 1024;

/** The most of one feedback that is logged. */
const MAX_LOGGED_BYTES = 2048;

/**
 * How many starts may arrive at a time with their key still to come in the body. They take no place in the queue; the
 * clients send at most 10 MiB each.
 */
const MAX_UNAUTHENTICATED = 64;
const MAX_UNAUTHENTICATED_BYTES = 128 * 1024 * 1024;

/** What a request asks of the gateway; null if it is somebody else's. A route that the app has itself is the app's. */
export function gatewayOperation(
  backend: Backend,
  { method }: IncomingMessage,
  path: string,
): GatewayOperation | null {
  if (method !== 'POST') return null;
  const operation = GATEWAY_PATHS.get(path);
  return operation === undefined || backend.model.routes?.has(path) === true ? null : operation;
}

export class Gateway {
  readonly #log: Log;
  readonly #unauthenticated = new Arrivals(
    new ByteBudget(MAX_UNAUTHENTICATED_BYTES),
    () => new ServeError('SERVE_QUEUE_FULL', undefined, { retryAfterS: 1 }),
  );

  constructor(log: Log) {
    this.#log = log;
  }

  /** Answers every request; rejects only for a defect of ours. Checks the API key itself: it is in the body. */
  async answer(ask: Ask, operation: GatewayOperation): Promise<void> {
    const { backend, request, response } = ask;
    const { maxBody, bodyTimeout } = backend.options;
    const isStart = operation.is === 'start';
    const isKnown = backend.keys.allows(keyOf(request.headers));
    let place: Admission = NO_PLACE;
    try {
      const maxBodyBytes = isStart ? maxBody : Math.min(maxBody, MAX_WORDS_BYTES);
      const announced = announcedBytes(request, maxBodyBytes);
      if (isStart) place = isKnown ? backend.model.dispatcher.admit(announced) : this.#admitUnauthenticated();

      backend.inviteBody(request, response);
      const limits = { announcedBytes: announced, maxBodyBytes, bodyTimeoutMs: bodyTimeout };
      const body = await receiveBody(request, limits, place);
      const envelope = await inSlices(readBody(body));
      ask.requestId = requestIdOf(request.headers, envelope.id);
      if (!isKnown && !backend.keys.allows(envelope.apiKey)) throw wrongKey();

      if (isStart) {
        if (!isKnown) {
          place.release(); // a client that showed its key goes on to a place in the queue
          place = backend.model.dispatcher.admit(body.bytes);
          place.grow(body.bytes);
        }
        await startCall(ask, place, envelope, body.bytes, operation.waits);
      } else if (operation.is === 'check') checkCall(ask, envelope);
      else takeFeedback(ask, this.#log, envelope);
    } catch (thrown) {
      place.release();
      if (!(thrown instanceof ServeError)) throw thrown;
      if (thrown.code !== 'SERVE_CANCELLED') turnAway(ask, thrown);
    }
  }

  /** @throws SERVE_QUEUE_FULL if there are too many, and all of them came just now */
  #admitUnauthenticated(): Admission {
    if (this.#unauthenticated.count >= MAX_UNAUTHENTICATED) this.#unauthenticated.makePlace();
    return this.#unauthenticated.add();
  }
}

function* readBody({ pieces, bytes }: Body): Generator<void, GatewayEnvelope> {
  return yield* readEnvelope(yield* joinSlices(pieces, bytes));
}

function wrongKey(): ServeError {
  return new ServeError('SERVE_UNAUTHORIZED', 'The apiKey is none that is known here.');
}

/** A question or feedback starts nothing and needs no place. */
const NO_PLACE: Admission = { begin: () => {}, grow: () => {}, complete: () => {}, release: () => {} };

/** Logs feedback on a call, known or not: the call's result may be forgotten by now. */
function takeFeedback(ask: Ask, log: Log, { callID, feedback }: GatewayEnvelope): void {
  const { requestId } = ask;
  const text = feedback?.toString('utf8', 0, MAX_LOGGED_BYTES).replace(/\s+/g, ' ') ?? '';
  log.info({ requestId, callID: callID?.slice(0, 100) ?? null, feedback: text }, 'feedback on a call');
  answer(ask, plainReply(requestId, 'success'));
}
