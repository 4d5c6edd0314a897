/**
 * A call whose body has several inputs. Each is a call of the app, alone or in a batch with others, also of other calls. The
 * values of their answers are the call's answer; the first that fails fails the call, with its place.
 */
import { refusal } from '../../protocol/errors.js';
import type { CallInfo } from '../api/types.js';
import { failureOf } from '../failures/failure.js';
import type { Inputs } from '../formats/inputs.js';
import { PLAIN_HEAD, Reply, assertNoError, valueOf } from '../formats/reply.js';
import { isAnswer, replyOf } from '../reply/reply-of.js';
import type { RunningCall } from './running-call.js';

/** An input that the app gets as a call: that of a whole call, or one of several. */
export interface AppCall extends Pick<RunningCall, 'call' | 'input' | 'cancelled' | 'answer'> {
  readonly ctx: CallInfo;
  /** Resolves once it has ended. */
  readonly settled: Promise<unknown>;
  /** `ofBatch`: the app has failed on several inputs, and nothing shows on which. */
  fail(thrown: unknown, ofBatch?: boolean): void;
}

/**
 * The inputs of one call, for the caller to run. `answer` resolves when all parts have ended; it rejects with the error of the
 * first that failed.
 */
export function callInParts(
  whole: RunningCall,
  inputs: Inputs,
): { readonly parts: readonly AppCall[]; readonly answer: Promise<Reply> } {
  const wish = { isOpen: true };
  const parts = inputs.values.map((input) => partOf(whole, input, wish));
  return { parts, answer: answerOf(parts, inputs) };
}

/** A Reply with the values of all of them, which is not what the schema of an output describes, and so not checked by it. */
async function answerOf(parts: readonly Part[], inputs: Inputs): Promise<Reply> {
  const values: unknown[] = [];
  for (const { settled } of parts) await settled;
  for (const [i, { value, input, isPlaced }] of parts.entries()) {
    try {
      values.push(await value);
    } catch (thrown) {
      throw isPlaced ? inputs.errorAt(i, failureOf(thrown, input), thrown) : thrown;
    }
  }
  return new Reply(PLAIN_HEAD, { kind: 'value', value: values });
}

interface Part extends AppCall {
  readonly value: Promise<unknown>;
  /** Whether its error is about its input. */
  isPlaced: boolean;
}

/** `wish`: shared by all parts of the call. One that fails leaves the others unwanted. */
function partOf(whole: RunningCall, input: unknown, wish: { isOpen: boolean }): Part {
  let resolve!: (value: Promise<unknown>) => void;
  let reject!: (thrown: unknown) => void;
  const value = new Promise<unknown>((...both) => ([resolve, reject] = both));
  return {
    call: whole.call,
    ctx: whole.ctx,
    input,
    value,
    settled: value.catch(() => (wish.isOpen = false)),
    isPlaced: true,

    get cancelled() {
      return whole.cancelled || !wish.isOpen;
    },

    answer: (returned) => resolve(answerValue(whole, returned)),

    fail(thrown, ofBatch = false) {
      this.isPlaced = !ofBatch;
      if (isAnswer(thrown)) this.answer(thrown);
      else reject(thrown);
    },
  };
}

/** Returns the value of an answer to one input. */
async function answerValue(whole: RunningCall, returned: unknown): Promise<unknown> {
  const output = await whole.accepted(returned);
  if (output instanceof Error) throw output;
  whole.hintNoReturn(output);
  const reply = await replyOf(output);
  const { head, body } = reply;
  if (body.kind === 'stream') {
    await body.iterator.return?.();
    throw refusal('This app streams its answer; a call of its own route gets it.');
  }
  assertNoError(reply);
  return valueOf(body, head.contentType);
}
