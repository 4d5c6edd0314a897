/**
 * Runs the app for calls that have begun together, one or a batch, and answers them.
 *
 * 1. Each body is read; a malformed one fails its own call, and the others run. A body may have several inputs
 *    (`inputs-of-call.ts`).
 * 2. The app's function gets the input; its batch function gets all inputs, and returns one entry for each.
 * 3. If the batch function throws and the app set `repeatable`, the inputs run again in halves, so that only the guilty one
 *    fails.
 */
import { AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServeError } from '../../protocol/errors.js';
import { entriesOf, halvesOf } from '../adapters/batch-entries.js';
import { maxBatchOf } from '../adapters/loaded-app.js';
import { Inputs } from '../formats/inputs.js';
import { hintOnce } from '../process/hint-once.js';
import { isPotassiumResponse, mayAnswerSeveral, isResponse } from '../reply/reply-of.js';
import { isThenable } from '../values/not-data.js';
import { callInParts, type AppCall } from './inputs-of-call.js';
import type { CallHost, Run, RunningCall } from './running-call.js';

/** Never throws. */
export function runCalls(calls: readonly RunningCall[], run: Run, host: CallHost): void {
  if (calls.length === 1) runOne(calls[0] as RunningCall, run, host);
  else void runBatch(calls, run, host);
}

function runOne(running: RunningCall, run: Run, host: CallHost): void {
  const { app, prints } = host;
  const { call, ctx, socket } = running;
  const ask = (input: unknown): unknown => {
    running.input = input;
    return app.handle(call.route, input, ctx);
  };
  const handle = (): unknown => {
    const input = socket ?? running.readInput(app.wishes(call.route));
    if (isThenable(input))
      return input.then((read) => (read instanceof Inputs ? runEach(running, read, run, host) : ask(read)));
    return ask(input);
  };
  let output: unknown;
  try {
    output = prints.run(call.requestId, handle);
  } catch (thrown) {
    running.fail(thrown);
    return;
  }
  running.answer(output);
}

/** Returns the answer to a call of several inputs. */
function runEach(running: RunningCall, inputs: Inputs, run: Run, host: CallHost): Promise<unknown> {
  const { parts, answer } = callInParts(running, inputs);
  void runInGroups(parts, inputs.most, run, host);
  return answer;
}

/** Never rejects. */
async function runBatch(calls: readonly RunningCall[], run: Run, host: CallHost): Promise<void> {
  const readable: RunningCall[] = [];
  const inParts: (readonly AppCall[])[] = [];
  let most = calls.length;
  for (const running of calls) {
    try {
      const given = running.readInput(host.app.wishes(running.call.route));
      const input: unknown = isThenable(given) ? await given : given;
      if (input instanceof Inputs) {
        const { parts, answer } = callInParts(running, input);
        running.answer(answer);
        inParts.push(parts);
        most = Math.max(most, input.most);
      } else {
        running.input = input;
        readable.push(running);
      }
    } catch (thrown) {
      running.fail(thrown);
    }
  }
  if (inParts.length === 0) await runTogether(readable, run, host);
  else {
    inParts.sort((one, other) => one.length - other.length); // none waits for one of thousands
    await runInGroups([...readable, ...inParts.flat()], most, run, host);
  }
}

/** Runs up to `most` at a time together, if the app takes batches, else one after the other. Never rejects. */
async function runInGroups(calls: readonly AppCall[], most: number, run: Run, host: CallHost): Promise<void> {
  const size = takesBatches(calls, host) ? most : 1;
  for (let begun = 0; begun < calls.length; begun += size) {
    const group = calls.slice(begun, begun + size);
    const isNext = begun > 0 && group.some(({ cancelled }) => !cancelled);
    await (isNext ? runNext : runTogether)(group, run, host);
    for (const { settled } of group) await settled;
  }
}

function takesBatches([first]: readonly AppCall[], { app, concurrency }: CallHost): boolean {
  return concurrency === 1 && first !== undefined && maxBatchOf(app, first.call.route) > 1;
}

/** Runs calls after others of their batch, without what these have left in their async context. */
async function runNext(calls: readonly AppCall[], run: Run, host: CallHost): Promise<void> {
  await nextTurn(); // reads the cancels of clients that have left in the meantime
  await new AsyncResource('banana-serve group').runInAsyncScope(() => runTogether(calls, run, host));
}

/** Runs the calls whose clients still wait, and answers them. */
async function runTogether(calls: readonly AppCall[], run: Run, host: CallHost): Promise<void> {
  const waited = calls.filter(({ cancelled }) => !cancelled);
  for (const running of calls) if (running.cancelled) running.fail(new ServeError('SERVE_CANCELLED'));
  if (waited.length === 0) return;
  let entries: readonly unknown[];
  try {
    const returned = await askApp(waited, host);
    entries = entriesOrError(returned, waited.length);
  } catch (thrown) {
    await onThrown(waited, thrown, run, host);
    return;
  }
  deliverTogether(run, host, () => waited.forEach((running, i) => running.answer(entries[i])));
}

/** Returns the result of the batch function. A single remaining call runs as it would without batching. */
function askApp(calls: readonly AppCall[], { app, prints }: CallHost): unknown {
  const [{ call, ctx, input }] = calls as [AppCall];
  return prints.run(call.requestId, async () => {
    if (calls.length === 1) return [await app.handle(call.route, input, ctx)];
    return app.handleBatch?.(
      call.route,
      calls.map((each) => each.input),
      calls.map((each) => each.ctx),
    );
  });
}

/** The entries that were returned; if they are wrong, the error for each call. */
function entriesOrError(returned: unknown, count: number): readonly unknown[] {
  try {
    return entriesOf(returned, count);
  } catch (wrong) {
    return Array<unknown>(count).fill(wrong);
  }
}

/** Called when none of these calls has been answered. */
async function onThrown(calls: readonly AppCall[], thrown: unknown, run: Run, host: CallHost): Promise<void> {
  const count = calls.length;
  if (count > 1 && host.app.repeatable) {
    for (const half of halvesOf(calls)) await runNext(half, run, host);
    return;
  }
  if (count > 1) hintOnce('repeatable', () => repeatableHint(count));
  const failure = count > 1 && isForOneCall(thrown) ? batchResponseError(count) : thrown;
  deliverTogether(run, host, () => calls.forEach((running) => running.fail(failure, count > 1)));
}

/** Puts endings into the channel one after the other, so that they leave together. */
function deliverTogether(run: Run, { channel }: CallHost, deliver: () => void): void {
  run.isDelivering = true;
  deliver();
  run.isDelivering = false;
  channel.flush();
}

function repeatableHint(count: number): string {
  return `The batch function threw, and all ${count} calls of its batch fail. If inputs may safely run twice, set \`export const config = { repeatable: true }\`: then such a batch runs again in halves, and only the call that makes it throw fails.`;
}

/** Whether it is a Response with which only one call can be answered. */
function isForOneCall(thrown: unknown): boolean {
  return isResponse(thrown) || (isPotassiumResponse(thrown) && !mayAnswerSeveral(thrown));
}

/** The error of a batch function that throws such a Response: it could answer only one call, and nothing shows which. */
function batchResponseError(calls: number): Error {
  return new TypeError(
    `a Response was thrown for ${calls} calls at once; return it as the entry of its call`,
  );
}
