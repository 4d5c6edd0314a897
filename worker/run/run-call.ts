/** Runs the app for one call that has begun, and answers it. */
import type { LoadedApp } from '../adapters/loaded-app.js';
import { isThenable } from '../values/thenable.js';
import type { RunnerOptions } from './runner.js';
import type { RunningCall } from './running-call.js';

/** Never throws. */
export function runCall(running: RunningCall, { app, prints }: Pick<RunnerOptions, 'app' | 'prints'>): void {
  let output: unknown;
  try {
    output = prints.run(running.call.requestId, () => handle(running, app));
  } catch (thrown) {
    running.fail(thrown);
    return;
  }
  running.answer(output);
}

function handle(running: RunningCall, app: LoadedApp): unknown {
  const { call, ctx, socket } = running;
  const input = socket ?? running.readInput(app.wishes(call.route));
  if (isThenable(input)) return input.then((value) => app.handle(call.route, value, ctx));
  return app.handle(call.route, input, ctx);
}
