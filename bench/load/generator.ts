/** The load generator's process: takes plans over IPC, one at a time, and answers with results. */
import { runClosedLoop } from './closed-loop.js';
import { runOpenLoop } from './open-loop.js';
import type { GeneratorReply, Plan } from './plan.js';

process.on('message', (plan: Plan) => {
  run(plan).then(answer, (thrown: unknown) => answer({ kind: 'error', message: String(thrown) }));
});
process.on('disconnect', () => process.exit(0));

async function run(plan: Plan): Promise<GeneratorReply> {
  if (plan.kind === 'closed') return { kind: 'closed', result: await runClosedLoop(plan) };
  return { kind: 'open', result: await runOpenLoop(plan) };
}

function answer(reply: GeneratorReply): void {
  process.send?.(reply);
}
