/** Kills servers that keep jobs, again and again under load, and checks afterwards that each job kept its promise. */
import assert from 'node:assert/strict';
import type { Cues } from './cues.js';
import { callAsync, jobEnd, type JobPage } from './jobs.js';
import { eventually, type Server } from './server.js';

export interface JobKills {
  readonly rounds: number;
  /** Pause of each client behind each answer; 0 by default. */
  readonly pauseMs?: number;
  /** Gets a line from the app for each begin: outside the store of jobs. */
  readonly cues: Pick<Cues, 'notes'>;
  /** Starts a server of the app `jobs`, with the jobs of the one before. */
  start(): Promise<Server>;
}

const CLIENTS = 6;

/** The route whose inputs may run again. */
const AGAIN = '/again';

interface Started {
  readonly name: string;
  readonly path: string;
  /** Null: the client never learned whether its job was accepted. */
  readonly id: string | null;
}

export interface KillsOutcome {
  readonly accepted: number;
  /** Number of accepted jobs by the state in which they ended. */
  readonly states: ReadonlyMap<string, number>;
}

/** @throws AssertionError if a job did not keep its promise */
export async function killedAgainAndAgain({
  rounds,
  cues,
  start,
  pauseMs = 0,
}: JobKills): Promise<KillsOutcome> {
  const jobs: Started[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const server = await start();
    const load = Array.from({ length: CLIENTS }, (_, client) =>
      callUntilKilled(server, `r${round}c${client}`, jobs, pauseMs),
    );
    const before = jobs.length;
    const isLoaded = (): boolean => jobs.length >= before + 2 * CLIENTS;
    await eventually(isLoaded, 60_000, () => `${jobs.length - before} jobs were accepted in round ${round}`);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 700)); // any moment
    server.process.kill('SIGKILL');
    await server.ended;
    await Promise.all(load);
  }
  const server = await start();
  await untilAllEnded(server);
  const begins = beginsIn(cues.notes());
  const states = new Map<string, number>();
  for (const { name, path, id } of jobs) {
    const attempts = begins.get(name) ?? [];
    assert.equal(
      new Set(attempts).size,
      attempts.length,
      `${name} began an attempt twice: ${attempts.join(', ')}`,
    );
    if (path !== AGAIN) assert.ok(attempts.length <= 1, `${name} began twice`);
    if (id === null) continue;
    const page = await jobEnd(server, id);
    assertTrue(page, path, attempts);
    states.set(page.state, (states.get(page.state) ?? 0) + 1);
  }
  assert.ok((states.get('succeeded') ?? 0) > 0, [...states].join(' '));
  await server.stop();
  return { accepted: jobs.filter(({ id }) => id !== null).length, states };
}

async function callUntilKilled(
  server: Server,
  client: string,
  jobs: Started[],
  pauseMs: number,
): Promise<void> {
  for (let i = 0; ; i += 1) {
    const name = `${client}n${i}`;
    const path = i % 2 === 0 ? '/' : AGAIN;
    const answer = await callAsync(server, path, '{}', { 'x-request-id': name }).catch(() => null);
    const isAccepted = answer?.status === 202;
    jobs.push({ name, path, id: isAccepted ? answer.headers.get('x-banana-job-id') : null });
    if (answer === null) return;
    assert.equal(answer.status, 202, answer.text);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function untilAllEnded(server: Server): Promise<void> {
  let open = '';
  for (const state of ['queued', 'running'])
    await eventually(
      async () => {
        open = await (await fetch(`${server.url}/_k/jobs?state=${state}&limit=3`)).text();
        return (JSON.parse(open) as { jobs: unknown[] }).jobs.length === 0;
      },
      120_000,
      () => open,
    );
}

/** Attempts that began, by the name of the call. */
function beginsIn(notes: readonly string[]): Map<string, string[]> {
  const begins = new Map<string, string[]>();
  for (const note of notes) {
    const [, name, attempt] = /^begun (\S+) (\S+)$/.exec(note) ?? [];
    if (name !== undefined && attempt !== undefined) begins.set(name, [...(begins.get(name) ?? []), attempt]);
  }
  return begins;
}

function assertTrue({ id, state, attempts }: JobPage, path: string, begun: readonly string[]): void {
  const is = `${id} of ${path} has ${state} after ${attempts} attempts, of which began ${begun.join(', ')}`;
  assert.ok(['succeeded', 'lost'].includes(state), is);
  assert.ok(
    begun.every((attempt) => Number(attempt) <= attempts),
    is,
  );
  if (state === 'succeeded') assert.ok(begun.includes(String(attempts)), is);
  if (state === 'lost') assert.equal(attempts, path === AGAIN ? 3 : 1, is);
}
