/** Answers the gateway's checks and feedback; neither takes a place in a queue. */
import { ServeError } from '../../../../protocol/errors.js';
import { refuseRequest } from '../../answer/own-answers.js';
import { HOLD_MS, whenEnded } from '../../answer/job-answers.js';
import { hasEnded } from '../../../jobs/job-record.js';
import { keyOf } from '../../access/api-keys.js';
import { readSmallBody, type RequestContext } from '../../request/request-context.js';
import { openEnvelope, type GatewayEnvelope } from './envelope.js';
import { plainReply, sendEnded, sendReply } from './reply.js';
import { CALL_PREFIX } from './start.js';

/** Maximum bytes of one feedback in the log. */
const MAX_LOGGED_BYTES = 2048;

export function answerCheck(context: RequestContext): Promise<void> {
  return answerEnvelope(context, async ({ text, isTrue }) => {
    const callID = text('callID');
    if (callID?.startsWith(CALL_PREFIX) !== true) throw unknownCall(callID);
    const record = await whenEnded(
      context,
      callID.slice(CALL_PREFIX.length),
      isTrue('longPoll') ? HOLD_MS : 0,
    );
    if (context.response.destroyed) return;
    if (record === null) throw unknownCall(callID);
    reportOnceSent(context);
    if (hasEnded(record)) await sendEnded(context, record);
    else sendReply(context, plainReply(context.requestId, 'running'));
  });
}

/** Logs feedback on a call, known or not: the call's result may no longer be kept. */
export function answerFeedback(context: RequestContext): Promise<void> {
  return answerEnvelope(context, ({ json, text }) => {
    const { backend, requestId } = context;
    const callID = text('callID')?.slice(0, 100) ?? null;
    const feedback = json('feedback')?.toString('utf8', 0, MAX_LOGGED_BYTES).replace(/\s+/g, ' ') ?? '';
    backend.log.info({ requestId, callID, feedback }, 'feedback on a call');
    reportOnceSent(context);
    sendReply(context, plainReply(requestId, 'success'));
  });
}

/** Reports the answer to the observer once it is sent, which may be late, or never if the client disconnects first. */
function reportOnceSent(context: RequestContext): void {
  const { backend, response } = context;
  response.once('finish', () => backend.observer.answered(context, response.statusCode, null));
}

/** Reads the envelope and checks the key, which may be in it. Rejects only because of a bug in this server. */
async function answerEnvelope(
  context: RequestContext,
  respond: (envelope: GatewayEnvelope) => void | Promise<void>,
): Promise<void> {
  const { keys } = context.backend;
  try {
    const envelope = await openEnvelope(context, await readSmallBody(context));
    const sent = keyOf(context.request.headers, context.headerNames.keys);
    if (!keys.allows(sent) && !keys.allows(envelope.text('apiKey')))
      throw new ServeError('SERVE_UNAUTHORIZED');
    await respond(envelope);
  } catch (thrown) {
    if (!(thrown instanceof ServeError)) throw thrown;
    if (thrown.code !== 'SERVE_CANCELLED') refuseRequest(context, thrown, {});
  }
}

function unknownCall(callID: string | null): ServeError {
  const named = callID === null ? 'the body has no callID' : callID.slice(0, 100);
  return new ServeError(
    'SERVE_NOT_FOUND',
    `callID does not exist, or its result is no longer kept: ${named}`,
  );
}
