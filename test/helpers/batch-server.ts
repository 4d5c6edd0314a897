/** A server whose batches run when they are full, long before their delay is over. */
import type { TestContext } from 'node:test';
import { ask } from './ask.js';
import { makeCues, type Cues } from './cues.js';
import { startHere } from './here.js';
import type { Answer, Server, StartOptions } from './server.js';

export interface Batches {
  readonly server: Server;
  readonly cues: Cues;
  /** Asks for all of them at once: as many as make a full batch. */
  askAll(inputs: readonly object[]): Promise<Answer[]>;
}

/** Options for batches that run when they have this size. */
export function fullBatches(size: number): readonly string[] {
  return ['--workers', '1', '--batch-size', String(size), '--max-batch-delay', '30s'];
}

/** One worker of the app `batches`, for batches of this size. */
export async function batchServer(
  t: TestContext,
  app: string,
  size: number,
  options: StartOptions = {},
): Promise<Batches> {
  const cues = makeCues(t);
  const args = [...fullBatches(size), ...(options.args ?? [])];
  const server = await startHere(app, { t, ...options, args, env: { ...options.env, ...cues.env } });
  return { server, cues, askAll: (inputs) => askTogether(server, inputs) };
}

/** Asks for all of them at once. Their ids are id-0, id-1 and so on. */
export function askTogether(server: Pick<Server, 'url'>, inputs: readonly object[]): Promise<Answer[]> {
  return Promise.all(inputs.map((input, i) => ask(server, input, { id: `id-${i}` })));
}

export const statuses = (answers: readonly Answer[]): number[] => answers.map(({ status }) => status);
