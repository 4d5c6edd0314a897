/** The handle on the load generator's process. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ClosedPlan, ClosedResult, GeneratorReply, OpenPlan, OpenResult, Plan } from './plan.js';

export class LoadGenerator {
  readonly #child: ChildProcess = fork(fileURLToPath(new URL('./generator.js', import.meta.url)), {
    serialization: 'advanced',
  });

  async runClosed(plan: Omit<ClosedPlan, 'kind'>): Promise<ClosedResult> {
    const reply = await this.#run({ kind: 'closed', ...plan });
    if (reply.kind !== 'closed') throw new Error(`unexpected ${reply.kind} reply of the load generator`);
    return reply.result;
  }

  async runOpen(plan: Omit<OpenPlan, 'kind'>): Promise<OpenResult> {
    const reply = await this.#run({ kind: 'open', ...plan });
    if (reply.kind !== 'open') throw new Error(`unexpected ${reply.kind} reply of the load generator`);
    return reply.result;
  }

  close(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  async #run(plan: Plan): Promise<GeneratorReply> {
    if (!this.#child.connected) throw new Error('the load generator has died');
    const stop = new AbortController();
    const { signal } = stop;
    try {
      this.#child.send(plan);
      const died = once(this.#child, 'exit', { signal }).then((): never => {
        throw new Error('the load generator died during a run');
      });
      const answered = once(this.#child, 'message', { signal }) as Promise<[GeneratorReply]>;
      const [reply] = await Promise.race([answered, died]);
      if (reply.kind === 'error') throw new Error(`load generator: ${reply.message}`);
      return reply;
    } finally {
      stop.abort();
    }
  }
}
